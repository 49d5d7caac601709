/** Waits for all promises. If some reject, rejects with the error of the first of them, in the order of the arguments. */
export async function together<const Promises extends readonly Promise<unknown>[]>(
  ...promises: Promises
): Promise<{ -readonly [Index in keyof Promises]: Awaited<Promises[Index]> }> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}
