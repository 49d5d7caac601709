import { writeCell } from '@keyward/contract/text'

export type Cell = string | number | null

function csvOf(cell: Cell): string {
  const shown = typeof cell === 'string' ? writeCell(cell) : String(cell ?? '')
  return /[",;\n\r]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown
}

/** Returns the rows as CSV with a line of names. Spreadsheets recognize UTF-8 by the mark at the beginning. */
export function toCsv(rows: readonly Readonly<Record<string, Cell>>[]): string {
  const lines = rows.map((row) => Object.values(row).map(csvOf).join(','))
  return `\uFEFF${[Object.keys(rows[0] ?? {}).join(','), ...lines].join('\r\n')}\r\n`
}
