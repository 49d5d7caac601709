export type Cell = string | number | null
/** A spreadsheet would run a text that begins with one of these characters as a formula. */
const FORMULA = /^[=+\-@\t\r]/

function csvOf(cell: Cell): string {
  const shown = typeof cell === 'string' && FORMULA.test(cell) ? `'${cell}` : String(cell ?? '')
  return /[",;\n\r]/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown
}

/** Returns the rows as CSV with a line of names. Spreadsheets recognize UTF-8 by the mark at the beginning. */
export function toCsv(rows: readonly Readonly<Record<string, Cell>>[]): string {
  const lines = rows.map((row) => Object.values(row).map(csvOf).join(','))
  return `\uFEFF${[Object.keys(rows[0] ?? {}).join(','), ...lines].join('\r\n')}\r\n`
}
