/** Returns the rows of CSV (RFC 4180) by the names in the heading. */
export function parseCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === '\r\n') rows.push([])
  }
  const [names = [], ...rest] = rows.filter((row) => row.length > 1)
  return rest.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i] ?? ''])))
}
