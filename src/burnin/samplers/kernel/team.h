// Threads of one call: they are started in it and gone when it returns.
#pragma once

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

// Where threads wait for each other. Waiting is short, so it spins; it yields when the machine is so
// busy that another thread may need this core to get there.
class Barrier {
  public:
    explicit Barrier(int size) : size_(size) {}

    void wait() {
        const int round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
            if (spins < 2000)
                pause();
            else
                std::this_thread::yield();
    }

    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

  private:
    const int size_;
    std::atomic<int> arrived_{0}, round_{0};
};

// Calls work(thread, barrier) in up to `size` threads, this one among them; fewer when the system gives
// no more. `work` must not throw.
template <class Work>
void run_team(int size, Work work) {
    std::vector<std::thread> others;
    std::atomic<Barrier*> go{nullptr};
    others.reserve(size_t(size));
    try {
        for (int i = 1; i < size; ++i)
            others.emplace_back([&go, &work, i] {
                Barrier* barrier;
                while (!(barrier = go.load(std::memory_order_acquire))) std::this_thread::yield();
                work(i, *barrier);
            });
    } catch (const std::exception&) {  // the team is as large as it got
    }
    Barrier barrier(int(others.size()) + 1);
    go.store(&barrier, std::memory_order_release);
    work(0, barrier);
    for (std::thread& other : others) other.join();
}
