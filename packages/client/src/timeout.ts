// An end to waiting for what others promise.

export class TooLate extends Error {}

/** As `promised`, but rejects with TooLate when that takes longer. The wait keeps a program alive, unlike a signal's. */
export async function within<Value>(timeoutMs: number, promised: Promise<Value>): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TooLate(`No answer in ${timeoutMs} ms.`)), timeoutMs)
  })
  try {
    return await Promise.race([promised, late])
  } finally {
    clearTimeout(timer)
  }
}
