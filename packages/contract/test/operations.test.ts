import { describe, expect, test } from 'vitest'

import { api } from '../src/api.ts'
import { type Operation, urlOf } from '../src/management/operations.ts'

const read: Operation = { route: 'GET /customers/{id}', needs: 'token' }
const list: Operation = { route: 'GET /customers', needs: 'token' }

describe('the URL of a call', () => {
  test('contains an empty member of the query, and omits absent ones', () => {
    const query = { email: '', name: null, limit: undefined, cursor: 'a b&c' }
    expect(urlOf(list, { query })).toBe('/api/v1/customers?email=&cursor=a+b%26c')
  })

  test('escapes parameters of the path', () => {
    expect(urlOf(read, { params: { id: 'a/b ?#%' } })).toBe('/api/v1/customers/a%2Fb%20%3F%23%25')
  })

  test.each(['', '.', '..'])('cannot have the parameter "%s", which would change the path', (id) => {
    expect(() => urlOf(read, { params: { id } })).toThrow('The parameter id must not be')
  })
})

const queries = Object.values<Readonly<Record<string, Operation>>>(api).flatMap((table) =>
  Object.entries(table).flatMap(([name, { query }]) => (query ? [{ name, query }] : [])),
)

test.each(queries)('$name rejects an empty member of the query', ({ query }) => {
  const names = Object.keys(query.shape)
  const { error } = query.safeParse(Object.fromEntries(names.map((name) => [name, ''])))
  expect(new Set(error?.issues.map(({ path }) => path.join('/')))).toEqual(new Set(names))
})

test('every list has a query', () => {
  expect(queries.filter(({ query }) => 'cursor' in query.shape).length).toBeGreaterThan(15)
})
