/** Tests pages while rows are deleted (docs/api.md#m1). */

import { expect, test } from 'vitest'

import { listPage, sortedPage } from '../../src/http/pagination.ts'

const LIST = { name: 'test', organizationId: 'o' }
const idOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
const show = ({ id }: { id: string }) => id

test('a page after a deleted row neither repeats nor skips a row', async () => {
  const rows = [6, 5, 4, 3, 2, 1].map((n) => ({ id: idOf(n) }))
  const read = (cursor?: string) =>
    listPage(LIST, { limit: 2, cursor }, show, (after, count) =>
      Promise.resolve(rows.filter(({ id }) => after === null || id < after).slice(0, count)),
    )
  const first = await read()
  expect(first.data).toEqual([idOf(6), idOf(5)])
  rows.splice(1, 2) // the last row of the page, and the first one of the next
  const second = await read(first.nextCursor ?? '')
  expect(second.data).toEqual([idOf(3), idOf(2)])
  expect(await read(second.nextCursor ?? '')).toEqual({ data: [idOf(1)], nextCursor: null })
})

test('a row that is deleted while its page is read is left out, and the next page follows it', async () => {
  const places = [1, 2, 3, 4].map((n) => ({ id: idOf(n), key: `${n}` }))
  const read = (cursor?: string) =>
    sortedPage(LIST, { limit: 2, cursor }, show, (after, count) =>
      Promise.resolve(
        places
          .filter(({ key }) => after === null || key > after.key)
          .slice(0, count)
          .map((place) => ({ place, row: place.key === '2' ? null : { id: place.id } })),
      ),
    )
  const first = await read()
  expect(first.data).toEqual([idOf(1)])
  expect(await read(first.nextCursor ?? '')).toEqual({ data: [idOf(3), idOf(4)], nextCursor: null })
})
