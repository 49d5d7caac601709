/**
 * How a service's process is to be started, which it cannot do for itself any more; infra/docker/validator.Dockerfile and
 * docs/operations/install.md say the same. Without it a validator works, and takes a few hundredths more time for a check.
 */
export const LAUNCH = {
  validator: {
    /**
     * V8 collects on the thread whose garbage it is: its helpers would take the workers' cores, to collect some 15 MB sooner.
     * Young objects have 4 MiB: with the 1 MiB that V8 begins with more of them are carried along and grow old, and with the 16
     * to which it would grow a collection has more to carry at once. And it does not collect everything, slowly and to save
     * memory, whenever little happens.
     */
    nodeArguments: [
      '--single-threaded-gc',
      '--min-semi-space-size=4',
      '--max-semi-space-size=4',
      '--no-memory-reducer',
    ],
    /**
     * glibc asks for huge pages for large blocks, such as the index: a read of memory waits less (docs/performance.md). And it
     * gives blocks of 1 MiB and more back to the system when they are freed, always: left to itself it would raise that bound.
     * From 2.35 on; an older one, or another library, passes it over.
     */
    env: { GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1048576' },
  },
  management: { nodeArguments: [], env: {} },
}
