/**
 * Returns the number of random worlds of a property test: `few` in `npm test`, `more` in `npm run test:slow`, and
 * `most` with `KEYWARD_LONG=1`.
 */
export function worlds(few: number, more: number, most = more): number {
  if (process.env['KEYWARD_LONG']) return most
  return process.env['KEYWARD_SLOW'] ? more : few
}
