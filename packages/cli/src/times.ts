/** Parses times and formats ages. A time is an ISO 8601 date or date-time, or a duration (`30d`, `12h`, `2w`, `1y`). */

import { EXIT, Failure } from './failure.ts'

const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000, y: 31_536_000_000 }

/** Parses a date, a date-time, or a duration from now. Returns ISO 8601 in UTC. Throws Failure for any other text. */
export function parseMoment(text: string, nowMs: number): string {
  const span = /^(\d{1,5})([hdwy])$/.exec(text)
  if (span) return new Date(nowMs + Number(span[1]) * (UNITS_MS[span[2] ?? ''] ?? 0)).toISOString()
  const isIso = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/.test(text)
  const time = isIso ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime()))
    throw new Failure(
      EXIT.usage,
      `${text} is not a time. Use a form such as 2027-01-31, 2027-01-31T12:00:00Z, 12h, 30d, 2w or 1y`,
    )
  return time.toISOString()
}

/** Parses a date, a date-time, or a duration before now. Returns ISO 8601 in UTC. Throws Failure for any other text. */
export function parsePast(text: string, nowMs: number): string {
  const isSpan = /^\d{1,5}[hdwy]$/.test(text)
  const timeMs = Date.parse(parseMoment(text, nowMs))
  return new Date(isSpan ? 2 * nowMs - timeMs : timeMs).toISOString()
}

/** Formats the time since `iso` with one unit: `3 s ago`, `2 min ago`. */
export function ago(iso: string, nowMs: number): string {
  const s = Math.max(0, Math.round((nowMs - Date.parse(iso)) / 1_000))
  if (s < 120) return `${s} s ago`
  if (s < 7_200) return `${Math.round(s / 60)} min ago`
  return s < 172_800 ? `${Math.round(s / 3_600)} h ago` : `${Math.round(s / 86_400)} d ago`
}
