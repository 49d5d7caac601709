import { useEffect, useState } from 'react'

/** Returns the result of the latest call of `read`, or `first` before that. Calls `read` again when one of the inputs changes. */
export function useLatest<Result>(read: () => Promise<Result>, first: Result, inputs: readonly unknown[]): Result {
  const [result, setResult] = useState(first)
  useEffect(() => {
    let isCurrent = true
    const run = async () => {
      const next = await read()
      if (isCurrent) setResult(next)
    }
    void run()
    return () => {
      isCurrent = false
    }
  }, inputs)
  return result
}
