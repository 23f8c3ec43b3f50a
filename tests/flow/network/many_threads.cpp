// Eight threads call one network, each with its own context, while two threads call another network. Ends with 0 when every answer was that of a single thread.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include ONE_HEADER
#include TWO_HEADER

namespace {

struct Network {
    loopegg_network* (*open)(const char*);
    void (*close)(loopegg_network*);
    loopegg_context* (*create)(loopegg_network*, int);
    void (*destroy)(loopegg_context*);
    int (*run)(loopegg_context*, const float* const*, float* const*);
    long (*input_size)(int);
    long (*output_size)(int);
};
#define JOINED(prefix, name) prefix##name
#define ENTRY(prefix, name) JOINED(prefix, name)
#define NETWORK(p) \
    Network { ENTRY(p, open), ENTRY(p, close), ENTRY(p, create), ENTRY(p, destroy), ENTRY(p, run), ENTRY(p, input_size), ENTRY(p, output_size) }

std::vector<float> answer(const Network& n, loopegg_context* context, int seed) {
    std::vector<float> in(static_cast<std::size_t>(n.input_size(0))), out(static_cast<std::size_t>(n.output_size(0)));
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 11) % 101) / 50 - 1;
    const float* from[] = {in.data()};
    float* to[] = {out.data()};
    return n.run(context, from, to) == 0 ? out : std::vector<float>();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const Network networks[] = {NETWORK(ONE), NETWORK(TWO)};
    constexpr int seeds = 4, callers = 10;
    loopegg_network* opened[2];
    std::vector<float> wanted[2][seeds];
    for (int k = 0; k < 2; ++k) {
        opened[k] = networks[k].open(argv[1 + k]);
        loopegg_context* alone = networks[k].create(opened[k], 1);
        if (!opened[k] || !alone) return 3;
        for (int s = 0; s < seeds; ++s) wanted[k][s] = answer(networks[k], alone, s);
        networks[k].destroy(alone);
    }
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (int caller = 0; caller < callers; ++caller)
        all.emplace_back([&, caller] {
            const int k = caller < 8 ? 0 : 1;
            for (int again = 0; again < 3; ++again) {
                loopegg_context* context = networks[k].create(opened[k], 1 + caller % 3);
                for (int n = 0; n < 30; ++n)
                    if (answer(networks[k], context, (caller + n) % seeds) != wanted[k][(caller + n) % seeds]) ++wrong;
                networks[k].destroy(context);
            }
        });
    for (std::thread& t : all) t.join();
    for (int k = 0; k < 2; ++k) networks[k].close(opened[k]);
    std::printf("%d wrong answers\n", wrong.load());
    return wrong != 0;
}
