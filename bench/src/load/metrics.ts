/** Computes the share of a validator's processor time that the aggregation of usage takes, from the validator's metrics. */

export interface UsageReading {
  /** The number of checks since the start of the validator. */
  checks: number
  /** The processor time of all threads since the start of the validator, in seconds. */
  cpuSeconds: number
  /** The time that the main thread has spent on the aggregation of usage since the start of the validator, in seconds. */
  recordSeconds: number
}

/** Returns the figures of the validator with this admin address, or null if they cannot be read. */
export async function readUsage(adminUrl: URL): Promise<UsageReading | null> {
  try {
    const response = await fetch(new URL('/metrics', adminUrl), { signal: AbortSignal.timeout(2_000) })
    return response.ok ? parseUsage(await response.text()) : null
  } catch {
    return null
  }
}

/** Parses the metrics in Prometheus' text format. Returns null if a metric is missing. */
export function parseUsage(text: string): UsageReading | null {
  const sum = (name: string): number | null => {
    const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    const values = lines.map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)))
    return values.length === 0 ? null : values.reduce((total, value) => total + value, 0)
  }
  const checks = sum('keyward_checks_total')
  const cpuSeconds = sum('process_cpu_seconds_total')
  const recordSeconds = sum('keyward_record_seconds_total')
  return checks === null || cpuSeconds === null || recordSeconds === null ? null : { checks, cpuSeconds, recordSeconds }
}

/**
 * Returns the share of the aggregation between two readings, from 0 to 1. Returns null if the validator has decided less than half of the
 * checks, for example because a balancer distributes them.
 */
export function recordingShare(before: UsageReading | null, after: UsageReading | null, checks: number): number | null {
  if (before === null || after === null || after.checks - before.checks < checks / 2) return null
  const cpuSeconds = after.cpuSeconds - before.cpuSeconds
  return cpuSeconds > 0 ? (after.recordSeconds - before.recordSeconds) / cpuSeconds : null
}
