/** Formats the table of clients and cases in docs/client/http-clients.md from the results of a run. */

import { type Case, CASES, CLIENTS, type Result } from './clients.ts'

const TITLES: Record<Case, string> = {
  length: 'known length',
  chunked: 'chunked',
  expect: '`Expect`',
  reuse: 'second request',
  http10: 'HTTP/1.0',
  gzip: 'gzip',
  bom: 'BOM',
  large: '1.1 MB',
  idle: 'after 30 s',
}

/** Returns the lines of the table. A case that a client cannot send is shown as a dash. */
export function tableOf(results: readonly Result[]): string[] {
  const rows = CLIENTS.map((client) => {
    const cells = CASES.map((name) => cellOf(results.filter((one) => one.client === client && one.case === name)))
    return `| ${[client, ...cells].join(' | ')} |`
  })
  return [
    `| Client | ${CASES.map((name) => TITLES[name]).join(' | ')} |`,
    `|---|${CASES.map(() => '---').join('|')}|`,
    ...rows,
  ]
}

/** Returns the most frequent response, followed by each path with another response, and that response. */
function cellOf(results: readonly Result[]): string {
  const counts = new Map<string, number>()
  for (const { received } of results) counts.set(shown(received), (counts.get(shown(received)) ?? 0) + 1)
  const [usual] = [...counts].toSorted(([, one], [, other]) => other - one).map(([received]) => received)
  if (usual === undefined) return '–'
  const others = results.filter(({ received }) => shown(received) !== usual)
  return [usual, ...others.map(({ path, received }) => `${path} ${shown(received)}`)].join(', ')
}

function shown(received: string): string {
  return received.startsWith('error') ? 'closed' : received
}
