export class TimeoutError extends Error {}

/**
 * Settles like `promised`, or rejects with a TimeoutError after `timeoutMs` or when `signal` is aborted. Unlike the timer of
 * `AbortSignal.timeout`, this timer keeps a Node process alive.
 */
export async function withTimeout<Value>(
  timeoutMs: number,
  promised: Promise<Value>,
  signal?: AbortSignal,
): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  let end = (): void => undefined
  const timedOut = new Promise<never>((_, reject) => {
    end = () => reject(new TimeoutError(`Timed out after ${timeoutMs} ms.`))
    timer = setTimeout(end, timeoutMs)
    signal?.addEventListener('abort', end)
    if (signal?.aborted === true) end()
  })
  try {
    return await Promise.race([promised, timedOut])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}
