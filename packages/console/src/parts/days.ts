/**
 * Days in the time zone of the organization. A license that ends on a day ends when the day is over, so its end is stored as the beginning
 * of the next day.
 */

/** The formats of days in one time zone. */
function formatsOf(timeZone: string) {
  return {
    timeZone,
    day: new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone }),
    weekday: new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeZone }),
    /** The format of a date field: 2027-12-31. */
    field: new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit', timeZone }),
    offset: new Intl.DateTimeFormat('en', { timeZoneName: 'longOffset', timeZone }),
  }
}

/** The time zone of the browser. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone
let zone = formatsOf(HERE)

/** Sets the time zone of the days that are shown and entered from now on. Null means the time zone of the browser. */
export function setZone(timeZone: string | null): void {
  if ((timeZone ?? HERE) !== zone.timeZone) zone = formatsOf(timeZone ?? HERE)
}

/** Returns the offset from UTC at a time, in milliseconds. */
function offsetAt(ms: number): number {
  const name = zone.offset.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? ''
  const [, sign, hours = '0', minutes = '0'] = /([+-])(\d\d):(\d\d)/.exec(name) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
}

/** Returns the time at which a day begins. The offset may change between midnight UTC and midnight of the zone. */
function startOf(year: number, month: number, date: number): number {
  const utc = Date.UTC(year, month, date)
  return utc - offsetAt(utc - offsetAt(utc))
}

/** Returns the last day of a term that ends at the time, as the value of a date field. */
export function lastDayOf(endsAt: string): string {
  return zone.field.format(Date.parse(endsAt) - 1)
}

/** Returns the end of a day as a time of the API. Returns the value itself if it is not a day, so that the API rejects it. */
export function endOf(value: string): string {
  const [, year, month, date] = /^(\d{4,6})-(\d\d)-(\d\d)$/.exec(value) ?? []
  if (year === undefined) return value
  return new Date(startOf(Number(year), Number(month) - 1, Number(date) + 1)).toISOString()
}

/** Returns the last day of a term in words. */
export function lastDayText(endsAt: string): string {
  return zone.day.format(Date.parse(endsAt) - 1)
}

/** Returns a day in words with the time zone in which it ends, such as "Friday, 31 December 2027" and "Europe/Zurich". */
export function longDay(value: string): { day: string; timeZone: string } {
  return { day: zone.weekday.format(Date.parse(endOf(value)) - 1), timeZone: zone.timeZone }
}

/** Returns the date fields of the usual ends of a term, counted from the later of now and the present end. */
export function usualEnds(endsAt: string | null): Readonly<Record<'month' | 'year' | 'endOfYear', string>> {
  const from = zone.field.format(Math.max(Date.now(), endsAt === null ? 0 : Date.parse(endsAt) - 1))
  const [year = 0, month = 0, date = 0] = from.split('-').map(Number)
  // The month after January 31 ends on the last day of February.
  const inMonths = (count: number) => {
    const last = new Date(Date.UTC(year, month + count, 0)).getUTCDate()
    return new Date(Date.UTC(year, month - 1 + count, Math.min(date, last))).toISOString().slice(0, 10)
  }
  return { month: inMonths(1), year: inMonths(12), endOfYear: `${year}-12-31` }
}
