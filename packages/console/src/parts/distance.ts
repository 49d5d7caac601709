const DAY_MS = 86_400_000
const DIVISIONS = [
  { unit: 'minute', ms: 60_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'day', ms: DAY_MS },
  { unit: 'month', ms: 30.44 * DAY_MS },
  { unit: 'year', ms: 365.25 * DAY_MS },
] as const
/** The age from which a date says more than its distance. */
const MOST_AGE_MS = 45 * DAY_MS

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })
const localDay = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })

/** Returns the distance of a time from now in words, such as "12 min. ago" or "in 5 days". */
export function distance(at: string): string {
  const ms = Date.parse(at) - Date.now()
  const size = Math.abs(ms)
  if (size < DIVISIONS[0].ms) return relative.format(0, 'second')
  if (ms < -MOST_AGE_MS) return localDay.format(new Date(at))
  const division = DIVISIONS.findLast((one) => size >= one.ms) ?? DIVISIONS[0]
  return relative.format(Math.trunc(ms / division.ms), division.unit)
}
