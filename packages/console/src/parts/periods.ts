const MS_PER_HOUR = 3_600_000

/** Maps the number of hours of each period to its label. */
export const PERIODS: Readonly<Record<string, string>> = {
  '24': 'Last 24 hours',
  '168': 'Last 7 days',
  '720': 'Last 30 days',
}

/** Returns the beginning of the period, as a whole hour, so that the query stays the same within an hour. Returns null for no period. */
export function fromOf(hours: string | null): string | null {
  if (hours === null || !Object.hasOwn(PERIODS, hours)) return null
  const nowMs = Math.floor(Date.now() / MS_PER_HOUR) * MS_PER_HOUR
  return new Date(nowMs - (Number(hours) - 1) * MS_PER_HOUR).toISOString()
}
