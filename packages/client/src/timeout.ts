export class TimeoutError extends Error {}

/**
 * Settles like `promised`, or rejects with a TimeoutError after `timeoutMs`. Unlike the timer of `AbortSignal.timeout`, this
 * timer keeps a Node process alive.
 */
export async function withTimeout<Value>(timeoutMs: number, promised: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timedOut = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`Timed out after ${timeoutMs} ms.`)), timeoutMs)
  })
  try {
    return await Promise.race([promised, timedOut])
  } finally {
    clearTimeout(timer)
  }
}
