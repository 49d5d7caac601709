/**
 * Days in the reader's time zone. A license that ends on a day ends when the day is over, so its end is stored as the beginning of the
 * next day.
 */

const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const weekday = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' })

/** Returns the value of a date field for a local day. */
function fieldOf(date: Date): string {
  const two = (part: number) => String(part).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** Returns the last day of a term that ends at the time, as the value of a date field. */
export function lastDayOf(endsAt: string): string {
  return fieldOf(new Date(Date.parse(endsAt) - 1))
}

/** Returns the end of a day as a time of the API. Returns the value itself if it is not a day, so that the API rejects it. */
export function endOf(value: string): string {
  const [, year, month, date] = /^(\d{4,6})-(\d\d)-(\d\d)$/.exec(value) ?? []
  if (year === undefined) return value
  return new Date(Number(year), Number(month) - 1, Number(date) + 1).toISOString()
}

/** Returns the last day of a term in words. */
export function lastDayText(endsAt: string): string {
  return day.format(new Date(Date.parse(endsAt) - 1))
}

/** Returns the end of a day in a sentence, such as "Ends when Friday, 31 December 2027 is over." */
export function longDay(value: string): string {
  return weekday.format(new Date(Date.parse(endOf(value)) - 1))
}

/** Returns the date fields of the usual ends of a term, counted from the later of now and the present end. */
export function usualEnds(endsAt: string | null): Readonly<Record<'month' | 'year' | 'endOfYear', string>> {
  const from = new Date(Math.max(Date.now(), endsAt === null ? 0 : Date.parse(endsAt) - 1))
  const [year, month, date] = [from.getFullYear(), from.getMonth(), from.getDate()]
  // The month after January 31 ends on the last day of February.
  const inMonths = (count: number) => {
    const last = new Date(year, month + count + 1, 0).getDate()
    return fieldOf(new Date(year, month + count, Math.min(date, last)))
  }
  return { month: inMonths(1), year: inMonths(12), endOfYear: `${year}-12-31` }
}
