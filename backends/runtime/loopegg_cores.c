/* How many threads a team has by default: what the affinity mask and the quotas of control groups leave to this process.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loopegg_runtime.h"

enum { path_bytes = 4096 };

/* The first two numbers of a file. A word that is no number ("max") is -1. Answers how many words were there. */
static int two_numbers(const char* path, long long* numbers) {
    char words[2][32];
    FILE* file = fopen(path, "r");
    if (!file) return 0;
    const int count = fscanf(file, "%31s %31s", words[0], words[1]);
    fclose(file);
    for (int i = 0; i < count; ++i) {
        char* end = NULL;
        numbers[i] = strtoll(words[i], &end, 10);
        if (*end) numbers[i] = -1;
    }
    return count < 0 ? 0 : count;
}

/* Whole processors of one group: version 2 has both numbers in cpu.max, version 1 has a file for each. 0: no quota. */
static int quota_of(const char* folder) {
    char path[path_bytes + 32];
    long long numbers[2] = {-1, -1};
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (two_numbers(path, numbers) != 2) {
        long long quota[2] = {-1, -1}, period[2] = {-1, -1};
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        two_numbers(path, quota);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        two_numbers(path, period);
        numbers[0] = quota[0], numbers[1] = period[0];
    }
    if (numbers[0] <= 0 || numbers[1] <= 0) return 0;
    const long long whole = numbers[0] / numbers[1];
    return whole < 1 ? 1 : whole > 1 << 20 ? 0 : (int)whole;
}

/* The smallest quota of a group and all groups around it. */
static int quota_up_from(const char* mount, const char* group) {
    char folder[path_bytes];
    int smallest = 0;
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) >= (int)sizeof folder) return 0;
    for (size_t length = strlen(folder); length >= strlen(mount);) {
        const int quota = quota_of(folder);
        if (quota && (!smallest || quota < smallest)) smallest = quota;
        while (length > 0 && folder[length - 1] != '/') --length;
        if (length == 0) break;
        folder[--length] = 0;
    }
    return smallest;
}

/* Whether a list with commas has a word. */
static int lists(const char* words, const char* word) {
    const size_t length = strlen(word);
    for (const char* at = strstr(words, word); at; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ',') && (at[length] == ',' || at[length] == 0)) return 1;
    return 0;
}

int loopeggrt_quota(const char* groups, const char* root) {
    char line[path_bytes], mount[path_bytes];
    int smallest = 0;
    FILE* file = fopen(groups, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) { /* NUMBER:CONTROLLERS:GROUP; version 2 has no controllers here */
        line[strcspn(line, "\n")] = 0;
        char* controllers = strchr(line, ':');
        char* group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        ++controllers;
        if (*controllers && !lists(controllers, "cpu")) continue;
        const char* const places[] = {"", "/unified", "/", "/cpu"}; /* version 2 alone, version 2 next to version 1, version 1 by its controllers, or by one */
        for (int i = *controllers ? 2 : 0; i < (*controllers ? 4 : 2); ++i) {
            snprintf(mount, sizeof mount, "%s%s%s", root, places[i], i == 2 ? controllers : "");
            const int quota = quota_up_from(mount, strcmp(group, "/") == 0 ? "" : group);
            if (quota && (!smallest || quota < smallest)) smallest = quota;
        }
    }
    fclose(file);
    return smallest;
}

int loopeggrt_default_threads(void) {
    cpu_set_t set;
    const char* text = getenv("LOOPEGG_THREADS");
    int count = text ? atoi(text) : 0;
    if (count > 0) return count;
    count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    const int quota = loopeggrt_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota && quota < count) count = quota;
    return count < 1 ? 1 : count;
}
