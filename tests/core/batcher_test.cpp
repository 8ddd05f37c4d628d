// Requests of many threads, put together to batches for an engine that computes with the processor: each ends once,
// with its own answer, or as it was given up, whatever else happens; nothing waits for ever.
#include "../check.hpp"

#include "../../src/ftcuda/_core/device/process.hpp"
#include "../../src/ftcuda/_core/serving/batcher.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

namespace {

using namespace ftcuda;
using namespace ftcuda::core;
using namespace ftcuda::core::serving;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr Status not_ready = Status::from_driver(abi::CUDA_ERROR_NOT_READY, Entry::none);
constexpr Status unknown = Status::from_driver(999, Entry::none);
constexpr Request::Time never = Request::Time::max();
const RowSizes inputs{sizeof(std::uint64_t), 3}, outputs{sizeof(std::uint64_t)};

std::uint64_t answer(std::uint64_t number, const std::byte* text) {
    return number * 3 + static_cast<std::uint64_t>(text[0]) + static_cast<std::uint64_t>(text[2]);
}

// Computes when it is asked, some questions later. A batch with this number fails; one with that never ends.
constexpr std::uint64_t fails = 1'000'000'007, hangs = 1'000'000'009;

class Processor final : public Engine {
public:
    explicit Processor(std::size_t lanes, int questions) : lanes_(lanes), questions_(questions) { ++alive; }
    ~Processor() override { --alive; }

    void launch(std::size_t index, Slab& slab, std::size_t size) noexcept override {
        CHECK(lanes_[index].slab == nullptr);
        CHECK(size >= 1 && size <= slab.capacity());
        const auto* const numbers = reinterpret_cast<const std::uint64_t*>(slab.inputs().array(0));
        lanes_[index] = {&slab, size, numbers[0] == fails + 1, 0};
        most = std::max(most, static_cast<std::size_t>(std::count_if(lanes_.begin(), lanes_.end(),
                                                                     [](const Lane& each) { return each.slab; })));
    }
    Status ask(std::size_t index, Ref<Shared>&) noexcept override {
        Lane& lane = lanes_[index];
        if (lane.has_failed) {
            lane = Lane();
            return unknown;
        }
        if (lane.asked++ < questions_) return not_ready;
        const Rows &in = lane.slab->inputs(), &out = lane.slab->outputs();
        const auto* const numbers = reinterpret_cast<const std::uint64_t*>(in.array(0));
        auto* const results = reinterpret_cast<std::uint64_t*>(out.array(0));
        Status status;
        for (std::size_t row = 0; row < lane.size; ++row) {
            if (numbers[row] == hangs && !is_released.load()) return not_ready;
            if (numbers[row] == fails) status = unknown;
            results[row] = answer(numbers[row], in.array(1) + 3 * row);
        }
        lane = Lane();
        return status;
    }

    static inline std::atomic<int> alive{0};
    std::atomic<bool> is_released{false};
    std::size_t most = 0;  // lanes at once

private:
    struct Lane {
        Slab* slab = nullptr;
        std::size_t size = 0;
        bool has_failed = false;
        int asked = 0;
    };
    std::vector<Lane> lanes_;
    const int questions_;
};

// A batcher with the memory that it works in.
struct Bench {
    explicit Bench(Policy given, int questions = 3) : policy(std::move(given)) {
        const std::size_t capacity = policy.capacity();
        const std::size_t in = Rows::bytes(inputs, capacity), out = Rows::bytes(outputs, capacity);
        std::vector<std::unique_ptr<Slab>> slabs;
        for (std::size_t index = 0; index < policy.slabs() * policy.priorities; ++index) {
            memory.push_back(std::make_unique<std::byte[]>(in + out));
            std::byte* const begin = memory.back().get();
            slabs.push_back(
                std::make_unique<Slab>(capacity, Rows(begin, inputs, capacity), Rows(begin + in, outputs, capacity)));
        }
        auto made = std::make_unique<Processor>(policy.lanes(), questions);
        processor = made.get();
        batcher = Batcher::start(policy, inputs, outputs, std::move(made), std::move(slabs));
    }
    ~Bench() {
        batcher->close();
        CHECK(batcher->wait_for_rest(Limit{60}).ok());
    }
    std::uint64_t operator[](Count count) const { return batcher->statistics()[count]; }

    Policy policy;
    std::vector<std::unique_ptr<std::byte[]>> memory;
    Processor* processor = nullptr;
    Ref<Batcher> batcher;
};

// A request with the memory of its rows and results.
struct Asked {
    Asked(std::vector<std::uint64_t> given, Request::Time deadline = never)
        : numbers(std::move(given)), texts(3 * numbers.size()) {
        for (std::size_t index = 0; index < texts.size(); ++index) texts[index] = static_cast<std::byte>(index % 251);
        request = Ref<Request>::adopt(new Request(numbers.size(), outputs, Clock::now(), deadline));
    }
    Rows rows() { return Rows({reinterpret_cast<std::byte*>(numbers.data()), texts.data()}); }
    bool has_answers() const {
        const auto* const results = reinterpret_cast<const std::uint64_t*>(request->results().array(0));
        for (std::size_t row = 0; row < numbers.size(); ++row) {
            if (results[row] != answer(numbers[row], texts.data() + 3 * row)) return false;
        }
        return true;
    }

    std::vector<std::uint64_t> numbers;
    std::vector<std::byte> texts;
    Ref<Request> request;
};

constexpr Limit at_once{0};

void one_request() {
    Bench bench({{1, 4, 16}});
    Asked asked({7, 8, 9});
    CHECK(bench.batcher->submit(*asked.request, asked.rows(), 0, at_once).ok());
    CHECK(asked.request->wait(Limit{60}).ok() && asked.has_answers());
    CHECK(bench[Count::batches] == 1 && bench[Count::padding] == 1 && bench[Count::left_by_idleness] == 1);
    CHECK(!bench.batcher->cancel(*asked.request) && asked.request->status().ok());
}

void a_request_of_many_batches() {
    Bench bench({{4, 16}});
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t number = 0; number < 1000; ++number) numbers.push_back(number);
    Asked asked(numbers);
    CHECK(bench.batcher->submit(*asked.request, asked.rows(), 0, at_once).ok());
    CHECK(asked.request->wait(Limit{60}).ok() && asked.has_answers());
    CHECK(bench[Count::batch_rows] == 1000 && bench[Count::batches] >= 63 && bench[Count::done] == 1);
    CHECK(bench.processor->most <= bench.policy.lanes());
}

void failures_are_of_one_batch() {
    Policy policy{{1}};
    Bench bench(policy);
    for (const std::uint64_t number : {fails, fails + 1}) {
        Asked good({5}), bad({number}), next({6});
        for (Asked* each : {&good, &bad, &next})
            CHECK(bench.batcher->submit(*each->request, each->rows(), 0, at_once).ok());
        CHECK(good.request->wait(Limit{60}).ok() && good.has_answers());
        CHECK(bad.request->wait(Limit{60}).is(999));
        CHECK(next.request->wait(Limit{60}).ok() && next.has_answers());
    }
    CHECK(bench[Count::failed] == 2 && bench[Count::done] == 4);
}

void a_batch_that_hangs() {
    Policy policy{{1}};
    policy.time_limit = std::chrono::milliseconds(20);
    Bench bench(policy);
    Asked stuck({hangs}), next({6});
    CHECK(bench.batcher->submit(*stuck.request, stuck.rows(), 0, at_once).ok());
    CHECK(stuck.request->wait(Limit{20}).reason() == Reason::timed_out && stuck.request->is_over());
    CHECK(bench.batcher->submit(*next.request, next.rows(), 0, at_once).ok());
    CHECK(next.request->wait(Limit{60}).ok() && next.has_answers());
    bench.processor->is_released.store(true);
}

// While nothing leaves: a batch that hangs has each lane.
struct Blocked {
    explicit Blocked(Bench& bench) : bench_(bench) {
        for (std::size_t lane = 0; lane < bench.policy.lanes(); ++lane) {
            stuck.push_back(std::make_unique<Asked>(std::vector<std::uint64_t>(bench.policy.capacity(), hangs)));
            CHECK(bench.batcher->submit(*stuck.back()->request, stuck.back()->rows(), 0, at_once).ok());
        }
        while (bench.batcher->queued() != 0) std::this_thread::yield();
    }
    ~Blocked() { release(); }
    void release() { bench_.processor->is_released.store(true); }

    Bench& bench_;
    std::vector<std::unique_ptr<Asked>> stuck;
};

void what_is_given_up_is_not_launched() {
    Bench bench({{1, 8}});
    Asked kept({1, 2}), given_up({3, fails}), expired({fails}, Clock::now() + microseconds(1)), last({4});
    {
        const Blocked blocked(bench);
        for (Asked* each : {&kept, &given_up, &expired, &last})
            CHECK(bench.batcher->submit(*each->request, each->rows(), 0, at_once).ok());
        CHECK(bench.batcher->cancel(*given_up.request) && !bench.batcher->cancel(*given_up.request));
        CHECK(given_up.request->wait(at_once).reason() == Reason::cancelled);
    }
    CHECK(kept.request->wait(Limit{60}).ok() && kept.has_answers());  // or it would fail
    CHECK(last.request->wait(Limit{60}).ok() && last.has_answers());
    CHECK(expired.request->wait(Limit{60}).reason() == Reason::expired);
    CHECK(bench[Count::cancelled] == 1 && bench[Count::expired] == 1 && bench[Count::failed] == 0);
}

void a_full_queue() {
    Policy policy{{1, 8}};
    policy.max_queued = 32;
    Bench bench(policy);
    Asked fits(std::vector<std::uint64_t>(32, 5)), too_much({6});
    {
        Blocked blocked(bench);
        CHECK(bench.batcher->submit(*fits.request, fits.rows(), 0, at_once).ok());
        CHECK(bench.batcher->submit(*too_much.request, too_much.rows(), 0, Limit{0.01}).reason() == Reason::queue_full);
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            blocked.release();
        });
        CHECK(bench.batcher->submit(*too_much.request, too_much.rows(), 0, Limit{60}).ok());
        later.join();
    }
    CHECK(fits.request->wait(Limit{60}).ok() && too_much.request->wait(Limit{60}).ok());
    CHECK(bench[Count::rejected] == 1);
}

void priorities_and_patience() {
    Policy policy{{1}};
    policy.in_flight = 1;
    policy.priorities = 2;
    policy.patience = 4;
    Bench bench(policy, 0);
    std::vector<std::unique_ptr<Asked>> high, low;
    std::mutex mutex;
    std::vector<int> order;
    class Note final : public Waiter {
    public:
        Note(std::mutex& mutex, std::vector<int>& order, int which) : mutex_(mutex), order_(order), which_(which) {}
        void over(Status) noexcept override {
            const std::lock_guard<std::mutex> lock(mutex_);
            order_.push_back(which_);
        }

    private:
        std::mutex& mutex_;
        std::vector<int>& order_;
        const int which_;
    };
    {
        const Blocked blocked(bench);
        for (int index = 0; index < 12; ++index) {
            for (auto* list : {&low, &high}) {
                if (list == &low && index >= 2) continue;
                list->push_back(std::make_unique<Asked>(std::vector<std::uint64_t>{std::uint64_t(index)}));
                Asked& asked = *list->back();
                asked.request->tell(std::make_unique<Note>(mutex, order, list == &low ? 1 : 0));
                CHECK(bench.batcher->submit(*asked.request, asked.rows(), list == &low ? 1 : 0, at_once).ok());
            }
        }
    }
    for (auto* list : {&low, &high})
        for (auto& each : *list) CHECK(each->request->wait(Limit{60}).ok());
    const std::lock_guard<std::mutex> lock(mutex);
    CHECK((order == std::vector<int>{0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

void closing_ends_all() {
    for (const bool abandons : {false, true}) {
        Bench bench({{1, 8}});
        Asked waits({4});
        {
            const Blocked blocked(bench);
            CHECK(bench.batcher->submit(*waits.request, waits.rows(), 0, at_once).ok());
            abandons ? bench.batcher->abandon() : bench.batcher->close();
            Asked late({1});
            CHECK(bench.batcher->submit(*late.request, late.rows(), 0, Limit{1}).reason() == Reason::closed);
            if (abandons) CHECK(waits.request->wait(Limit{60}).reason() == Reason::closed);
        }
        CHECK(bench.batcher->wait_for_rest(Limit{60}).ok());
        CHECK(abandons || (waits.request->wait(at_once).ok() && waits.has_answers()));
    }
}

// Two threads that end the same requests, at nearly the same time: one of them does.
void one_ends_it() {
    constexpr std::size_t many = 20'000;
    Bench bench({{1}});
    std::vector<std::unique_ptr<Asked>> requests;
    for (std::size_t index = 0; index < many; ++index)
        requests.push_back(std::make_unique<Asked>(std::vector<std::uint64_t>{1}));
    std::atomic<std::size_t> ended{0}, ready{0};
    const auto end_all = [&] {
        for (std::size_t index = 0; index < many; ++index) {
            ready.fetch_add(1);
            while (ready.load() < 2 * index + 2) std::this_thread::yield();
            ended += bench.batcher->cancel(*requests[index]->request) ? 1 : 0;
        }
    };
    std::thread other(end_all);
    end_all();
    other.join();
    CHECK(ended == many && bench[Count::cancelled] == many);
}

// All at once: many threads, requests of all sizes, some given up, some with deadlines, batches that fail, and an end
// in the middle of it.
void many_threads(unsigned seed, bool abandons) {
    Policy policy{{1, 2, 7, 16}};
    policy.max_queued = 256;
    policy.priorities = 2;
    policy.max_delay = microseconds(100);
    Bench bench(policy, static_cast<int>(seed % 5));
    std::array<std::atomic<std::uint64_t>, 6> ends{};  // done, failed, cancelled, expired, rejected, closed
    std::atomic<std::uint64_t> sent{0};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            std::mt19937 random(seed * 16 + thread);
            std::vector<std::unique_ptr<Asked>> flying;
            const auto end_one = [&] {
                Asked& asked = *flying.back();
                if (random() % 8 == 0) bench.batcher->cancel(*asked.request);
                const Status status = asked.request->wait(Limit{60});
                const bool failed = status.is(999);
                CHECK(!status.ok() || asked.has_answers());
                CHECK(asked.request->is_over());
                ++ends[status.ok()                            ? 0
                       : failed                               ? 1
                       : status.reason() == Reason::cancelled ? 2
                       : status.reason() == Reason::expired   ? 3
                                                              : 5];
                CHECK(status.ok() || failed || status.reason() == Reason::cancelled ||
                      status.reason() == Reason::expired || status.reason() == Reason::closed);
                flying.pop_back();
            };
            for (int turn = 0; turn < 400; ++turn) {
                std::vector<std::uint64_t> numbers(1 + random() % (random() % 4 == 0 ? 40 : 3));
                for (std::uint64_t& number : numbers) number = random() % 1000 == 0 ? fails : random();
                const auto deadline = random() % 8 == 0 ? Clock::now() + microseconds(random() % 300) : never;
                flying.push_back(std::make_unique<Asked>(std::move(numbers), deadline));
                Asked& asked = *flying.back();
                ++sent;
                const Status status = bench.batcher->submit(*asked.request, asked.rows(), random() % 2,
                                                            Limit{random() % 2 == 0 ? 0.0 : 60.0});
                if (!status.ok()) {
                    CHECK(status.reason() == Reason::queue_full || status.reason() == Reason::closed);
                    ++ends[status.reason() == Reason::closed ? 5 : 4];
                    flying.pop_back();
                }
                while (flying.size() > random() % 6) end_one();
                if (thread == 0 && turn == 300 && seed % 2 != 0)
                    abandons ? bench.batcher->abandon() : bench.batcher->close();
            }
            while (!flying.empty()) end_one();
        });
    }
    for (std::thread& each : threads) each.join();
    std::uint64_t ended = 0;
    for (const auto& each : ends) ended += each;
    CHECK(ended == sent);
    CHECK(bench[Count::done] == ends[0] && bench[Count::failed] >= ends[1] && bench[Count::cancelled] == ends[2]);
    CHECK(bench[Count::expired] == ends[3] && bench[Count::rejected] == ends[4]);
    bench.batcher->close();
    CHECK(bench.batcher->wait_for_rest(Limit{60}).ok());
    CHECK(bench.batcher->queued() == 0);  // rows that were given up too
}

// Lanes may be amid a batch. Nothing is destroyed any more, so this comes last. Mutant: the thread lets go of all.
void what_is_under_way_at_exit_stays() {
    auto* const bench = new Bench({{1}});
    auto* const stuck = new Asked({hangs});
    CHECK(bench->batcher->submit(*stuck->request, stuck->rows(), 0, at_once).ok());
    while (bench->batcher->queued() != 0) std::this_thread::yield();
    CHECK(Processor::alive == 1);
    process::begin_exit(false);
    bench->batcher = {};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(Processor::alive == 1);
}

}  // namespace

int main(int, char** arguments) {
    one_request();
    a_request_of_many_batches();
    failures_are_of_one_batch();
    a_batch_that_hangs();
    what_is_given_up_is_not_launched();
    a_full_queue();
    priorities_and_patience();
    closing_ends_all();
    one_ends_it();
    const auto end = Clock::now() + std::chrono::seconds(arguments[1] != nullptr ? std::atoi(arguments[1]) : 2);
    for (unsigned seed = 0; Clock::now() < end; ++seed) many_threads(seed, seed % 4 == 3);
    what_is_under_way_at_exit_stays();
    return test::report();
}
