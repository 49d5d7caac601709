/** Converts the activity columns of a batch to rows and back, because tests are easier to write with rows. */

import type { ActivityColumns } from '@keyward/database'

export interface ActivityRow {
  minuteMs: number
  licenseId: Uint8Array
  code: string
  machineId: Uint8Array | null
  count: number
  firstAtMs: number
  lastAtMs: number
  seen?: boolean
}

export function toActivityColumns(rows: readonly ActivityRow[]): ActivityColumns {
  const machineAt = [0]
  const codeNames = [...new Set(rows.map(({ code }) => code))]
  for (const { machineId } of rows) machineAt.push((machineAt.at(-1) ?? 0) + (machineId?.length ?? 0))
  return {
    minutesMs: Float64Array.from(rows, ({ minuteMs }) => minuteMs),
    licenseIds: Buffer.concat(rows.map(({ licenseId }) => licenseId)),
    codes: Uint8Array.from(rows, ({ code }) => codeNames.indexOf(code)),
    codeNames,
    machineAt: Int32Array.from(machineAt),
    machineBytes: Buffer.concat(rows.map(({ machineId }) => machineId ?? Buffer.alloc(0))),
    counts: Int32Array.from(rows, ({ count }) => count),
    firstsMs: Float64Array.from(rows, ({ firstAtMs }) => firstAtMs),
    lastsMs: Float64Array.from(rows, ({ lastAtMs }) => lastAtMs),
    seen: Uint8Array.from(rows, ({ seen = false }) => Number(seen)),
  }
}

export function toActivityRows(columns: ActivityColumns): ActivityRow[] {
  const { minutesMs, licenseIds, codes, codeNames, machineAt, machineBytes, counts, firstsMs, lastsMs, seen } = columns
  return Array.from(codes, (code, i) => {
    const [start = 0, end = 0] = machineAt.subarray(i, i + 2)
    return {
      minuteMs: minutesMs[i] ?? Number.NaN,
      licenseId: licenseIds.slice(i * 16, i * 16 + 16),
      code: codeNames[code] ?? '',
      machineId: start === end ? null : machineBytes.slice(start, end),
      count: counts[i] ?? Number.NaN,
      firstAtMs: firstsMs[i] ?? Number.NaN,
      lastAtMs: lastsMs[i] ?? Number.NaN,
      seen: seen[i] === 1,
    }
  })
}
