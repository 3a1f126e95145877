/* Messages and collectives out of and into the memory of GPUs, every byte compared.

   gpu_buffers [COUNT ...]: numbers of doubles, else from 1 to 1,048,576.

   No header or library of the toolkit is needed: the MPI under test has loaded its runtime. Each
   rank takes the GPU of its number on the node, and shares it where there are fewer GPUs. Lines that
   begin with "at" name the step before it is taken, so the last one is where a run ended. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TO_DEVICE = 1, TO_HOST = 2, GUARD = 7 };

static struct {
    const char *name;
    int (*count)(int *);
    int (*set)(int);
    int (*allocate)(void **, size_t);
    int (*release)(void *);
    int (*copy)(void *, const void *, size_t, int);
    int (*wait)(void);
} gpu;

static int rank, ranks, wrong;

static void *function(void *from, const char *prefix, const char *name)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    return dlsym(from, whole);
}

static int find_runtime(void)
{
    static const char *kinds[][4] = {
        {"cuda", "libcudart.so.13", "libcudart.so.12", "libcudart.so"},
        {"hip", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"},
    };
    for (int kind = 0; kind < 2; kind++) {
        const char **row = kinds[kind];
        void *from = dlsym(RTLD_DEFAULT, kind ? "hipMalloc" : "cudaMalloc") ? RTLD_DEFAULT : NULL;
        for (int i = 1; !from && i < 4; i++) /* of an MPI that loads it when it needs it */
            from = dlopen(row[i], RTLD_NOW | RTLD_GLOBAL);
        if (!from && !function(from, row[0], "Malloc"))
            continue;
        gpu.name = row[0];
        gpu.count = function(from, row[0], "GetDeviceCount");
        gpu.set = function(from, row[0], "SetDevice");
        gpu.allocate = function(from, row[0], "Malloc");
        gpu.release = function(from, row[0], "Free");
        gpu.copy = function(from, row[0], "Memcpy");
        gpu.wait = function(from, row[0], "DeviceSynchronize");
        return gpu.count && gpu.set && gpu.allocate && gpu.release && gpu.copy && gpu.wait;
    }
    return 0;
}

static void need(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s: rank %d, error %d of %s's runtime\n", what, rank, status, gpu.name);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void at(const char *what, int count)
{
    if (rank == 0) {
        printf("at %s of %d\n", what, count);
        fflush(stdout);
    }
}

/* A buffer of doubles with a guard behind it, on the GPU or not. */
typedef struct {
    double *memory, *image;
    int count, device;
} Buffer;

static void put(Buffer *one)
{
    size_t bytes = (one->count + GUARD) * sizeof(double);
    if (one->device) {
        need(gpu.copy(one->memory, one->image, bytes, TO_DEVICE), "copy to the GPU");
        need(gpu.wait(), "wait"); /* a copy of up to 64 KiB may return before it has ended */
    }
}

static Buffer buffer(int count, int device)
{
    Buffer one = {NULL, NULL, count, device};
    size_t bytes = (count + GUARD) * sizeof(double);
    one.image = malloc(bytes);
    if (device)
        need(gpu.allocate((void **) &one.memory, bytes), "allocation");
    else
        one.memory = one.image;
    for (int i = 0; i < count + GUARD; i++)
        one.image[i] = -1 - i;
    put(&one);
    return one;
}

static void get(Buffer *one)
{
    size_t bytes = (one->count + GUARD) * sizeof(double);
    if (one->device) {
        need(gpu.wait(), "wait");
        need(gpu.copy(one->image, one->memory, bytes, TO_HOST), "copy from the GPU");
    }
}

static void drop(Buffer *one)
{
    if (one->device)
        need(gpu.release(one->memory), "release");
    free(one->image);
}

static double value(int from, int i)
{
    return from * 1000003.0 + i % 65521 + 0.5;
}

static void fill(Buffer *one, int from)
{
    for (int i = 0; i < one->count; i++)
        one->image[i] = value(from, i);
    put(one);
}

static void compare(const char *what, int i, double found, double wanted)
{
    if (found != wanted && !wrong++)
        printf("wrong %s: rank %d element %d found %.1f expected %.1f\n", what, rank, i, found,
               wanted);
}

static void guard(const char *what, Buffer *one)
{
    char whole[96];
    snprintf(whole, sizeof whole, "%s, behind its end", what);
    for (int i = one->count; i < one->count + GUARD; i++)
        compare(whole, i, one->image[i], -1 - i);
}

/* Each rank sends to the next and receives from the one before. */
static void messages(int count, int from_device, int to_device)
{
    static const char *names[] = {"", "message host to GPU", "message GPU to host",
                                  "message GPU to GPU"};
    const char *what = names[2 * from_device + to_device];
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    Buffer out = buffer(count, from_device), in = buffer(count, to_device);
    MPI_Request requests[2];
    at(what, count);
    for (int round = 0; round < 3; round++) {
        fill(&out, rank + round);
        MPI_Irecv(in.memory, count, MPI_DOUBLE, before, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out.memory, count, MPI_DOUBLE, next, round, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        get(&in);
        for (int i = 0; i < count; i++)
            compare(what, i, in.image[i], value(before + round, i));
        guard(what, &in);
    }
    drop(&out);
    drop(&in);
}

/* A derived type: `elements` elements, each of `blocks` blocks of `block` doubles, one of them every
   `stride`. Place of its i-th double: */
typedef struct {
    int elements, blocks, block, stride;
} Layout;

static int place(Layout of, int i)
{
    return i / of.block * of.stride + i % of.block;
}

static int extent(Layout of)
{
    return of.elements * of.blocks * of.stride;
}

static MPI_Datatype type_of(Layout of)
{
    MPI_Datatype blocks, resized;
    MPI_Type_vector(of.blocks, of.block, of.stride, MPI_DOUBLE, &blocks);
    MPI_Type_create_resized(blocks, 0, (MPI_Aint) of.blocks * of.stride * sizeof(double), &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&blocks);
    return resized;
}

/* As messages(), from one derived type into another: packed and unpacked on the GPU. */
static void strided(const char *what, Layout from, Layout to, int from_device, int to_device)
{
    int count = from.elements * from.blocks * from.block, all = extent(to);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Datatype out_type = type_of(from), in_type = type_of(to);
    Buffer out = buffer(extent(from), from_device), in = buffer(all, to_device);
    char *came = calloc(all, 1);
    at(what, count);
    fill(&out, rank);
    MPI_Sendrecv(out.memory, from.elements, out_type, next, 9, in.memory, to.elements, in_type,
                 before, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    get(&in);
    for (int i = 0; i < count; i++) {
        compare(what, place(to, i), in.image[place(to, i)], value(before, place(from, i)));
        came[place(to, i)] = 1;
    }
    for (int i = 0; i < all; i++) {
        if (!came[i])
            compare(what, i, in.image[i], -1 - i);
    }
    guard(what, &in);
    free(came);
    MPI_Type_free(&out_type);
    MPI_Type_free(&in_type);
    drop(&out);
    drop(&in);
}

/* Up to so many doubles: fewer once an MPI has taken long for it, as for a kernel for each block. */
static int derived_most = 1 << 20;

static void derived(int count)
{
    enum { FEW = 4, LONG = 4096, LESS = 8192, SECONDS = 5 };
    double begin = MPI_Wtime(), took, longest;
    count = count < derived_most ? count : derived_most;
    Layout second = {1, count, 1, 2}, third = {1, count, 1, 3}, whole = {1, 1, count, count};
    strided("strided message GPU to GPU", second, third, 1, 1);
    strided("strided message GPU to host", second, third, 1, 0);
    strided("strided message host to GPU", second, third, 0, 1);
    strided("message GPU to GPU, strided there", whole, third, 1, 1);
    if (count % FEW == 0) {
        Layout small = {count / FEW, FEW, 1, 2};
        strided("message of small strided types GPU to GPU", small, third, 1, 1);
        strided("strided message GPU to GPU, of small types there", second, small, 1, 1);
    }
    if (count % LONG == 0) {
        Layout long_blocks = {1, count / LONG, LONG, LONG + 8};
        strided("message of long blocks GPU to GPU", long_blocks, long_blocks, 1, 1);
        strided("message of long blocks GPU to host", long_blocks, second, 1, 0);
    }
    took = MPI_Wtime() - begin;
    MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (longest > SECONDS && derived_most > LESS) {
        derived_most = LESS;
        if (rank == 0)
            printf("slow: derived types of %d doubles took %.0f s, so no larger ones than %d follow\n",
                   count, longest, LESS);
    }
}

/* Put to the next rank and got back from it, by windows of the host's and of the GPU's memory. */
static void one_sided(int count)
{
    size_t bytes = count * sizeof(double);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int device = 0; device < 2; device++) {
        const char *puts = device ? "put GPU to GPU" : "put GPU to host",
                   *gets = device ? "get GPU to GPU" : "get host to GPU";
        Buffer out = buffer(count, 1), in = buffer(count, 1), window = buffer(count, device);
        double *memory = window.memory;
        MPI_Win win;
        at(puts, count);
        if (device)
            MPI_Win_create(memory, bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        else
            MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
        fill(&out, rank);
        MPI_Win_fence(0, win);
        MPI_Put(out.memory, count, MPI_DOUBLE, next, 0, count, MPI_DOUBLE, win);
        MPI_Win_fence(0, win);
        if (device)
            get(&window);
        else
            memcpy(window.image, memory, bytes);
        for (int i = 0; i < count; i++)
            compare(puts, i, window.image[i], value(before, i));
        if (device)
            guard(puts, &window);
        at(gets, count);
        MPI_Win_fence(0, win);
        MPI_Get(in.memory, count, MPI_DOUBLE, next, 0, count, MPI_DOUBLE, win);
        MPI_Win_fence(0, win);
        get(&in);
        for (int i = 0; i < count; i++)
            compare(gets, i, in.image[i], value(rank, i));
        guard(gets, &in);
        MPI_Win_free(&win);
        drop(&out);
        drop(&in);
        drop(&window);
    }
}

static void collectives(int count)
{
    Buffer one = buffer(count, 1), sum = buffer(count, 1), all = buffer(count * ranks, 1),
           every = buffer(count * ranks, 1);

    at("broadcast in GPU memory", count);
    fill(&one, rank);
    MPI_Bcast(one.memory, count, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
    get(&one);
    for (int i = 0; i < count; i++)
        compare("broadcast in GPU memory", i, one.image[i], value(ranks - 1, i));

    for (int place = 0; place < 2; place++) {
        const char *what = place ? "allreduce in place in GPU memory" : "allreduce in GPU memory";
        Buffer *to = place ? &one : &sum;
        at(what, count);
        fill(&one, rank);
        MPI_Allreduce(place ? MPI_IN_PLACE : one.memory, to->memory, count, MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
        get(to);
        for (int i = 0; i < count; i++) {
            double wanted = 0;
            for (int from = 0; from < ranks; from++)
                wanted += value(from, i);
            compare(what, i, to->image[i], wanted);
        }
        guard(what, to);
    }

    at("reduce in GPU memory", count);
    fill(&one, rank);
    MPI_Reduce(one.memory, sum.memory, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    get(&sum);
    for (int i = 0; rank == 0 && i < count; i++)
        compare("reduce in GPU memory", i, sum.image[i], value(ranks - 1, i));

    at("allgather in GPU memory", count);
    fill(&one, rank);
    MPI_Allgather(one.memory, count, MPI_DOUBLE, all.memory, count, MPI_DOUBLE, MPI_COMM_WORLD);
    get(&all);
    for (int i = 0; i < count * ranks; i++)
        compare("allgather in GPU memory", i, all.image[i], value(i / count, i % count));
    guard("allgather in GPU memory", &all);

    at("alltoall in GPU memory", count);
    fill(&all, rank);
    MPI_Alltoall(all.memory, count, MPI_DOUBLE, every.memory, count, MPI_DOUBLE, MPI_COMM_WORLD);
    get(&every);
    for (int i = 0; i < count * ranks; i++)
        compare("alltoall in GPU memory", i, every.image[i],
                value(i / count, rank * count + i % count));
    guard("alltoall in GPU memory", &every);

    drop(&one);
    drop(&sum);
    drop(&all);
    drop(&every);
}

/* MB/s of messages of 4 MiB from one GPU's memory to another rank's, the best of five rounds. */
static void bandwidth(const char *what, Layout layout, int times)
{
    MPI_Datatype type = type_of(layout);
    Buffer one = buffer(extent(layout), 1);
    double bytes = (double) layout.elements * layout.blocks * layout.block * sizeof(double), best = 0;
    at(what, extent(layout));
    for (int round = 0; round < 6; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int i = 0; i < times; i++) {
            if (rank == 0)
                MPI_Send(one.memory, layout.elements, type, 1, 5, MPI_COMM_WORLD);
            else if (rank == 1)
                MPI_Recv(one.memory, layout.elements, type, 0, 5, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        if (rank == 1)
            MPI_Send(NULL, 0, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD);
        else if (rank == 0)
            MPI_Recv(NULL, 0, MPI_DOUBLE, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double rate = times * bytes / (MPI_Wtime() - begin) / 1e6;
        if (round && rate > best) /* the first one maps the memory */
            best = rate;
    }
    if (rank == 0)
        printf("%s %.1f MB/s\n", what, best);
    MPI_Type_free(&type);
    drop(&one);
}

int main(int argc, char **argv)
{
    static const int usual[] = {1, 3, 100, 1024, 8192, 50001, 131072, 1048576};
    int given = argc - 1, devices = 0, mine = 0, status = -1, all = 0;
    MPI_Comm node;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!find_runtime()) {
        if (rank == 0)
            printf("lost: no runtime of a GPU is loaded with this MPI\n");
        MPI_Finalize();
        return 0;
    }
    if ((status = gpu.count(&devices)) || devices < 1) {
        printf("none: %s's runtime finds no GPU for rank %d, its error is %d\n", gpu.name, rank,
               status);
        devices = 0;
    }
    MPI_Allreduce(&devices, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all) {
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &mine);
    MPI_Comm_free(&node);
    need(gpu.set(mine % devices), "choice of the GPU");
    if (rank == 0)
        printf("runtime %s, %d GPUs on the first node\n", gpu.name, devices);
    for (int i = 0; i < (given ? given : (int) (sizeof usual / sizeof usual[0])); i++) {
        int count = given ? atoi(argv[i + 1]) : usual[i];
        messages(count, 1, 1);
        messages(count, 1, 0);
        messages(count, 0, 1);
        derived(count);
        collectives(count);
        one_sided(count);
    }
    bandwidth("bandwidth", (Layout) {1, 1, 1 << 19, 1 << 19}, 10);
    if (derived_most > 1 << 19)
        bandwidth("strided", (Layout) {1, 1 << 19, 1, 2}, 2);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && !all)
        printf("right on %d ranks\n", ranks);
    MPI_Finalize();
    return 0;
}
