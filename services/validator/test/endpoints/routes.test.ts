/** Compares the paths of the validator with the paths that each balancer forwards to validators. */

import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { PATHS } from '../../src/endpoints/routes.ts'

const paths = Object.values(PATHS).toSorted()
const read = (file: string): string => readFileSync(new URL(`../../../../infra/${file}`, import.meta.url), 'utf8')

test.each([
  ['start/gateway.ts', /VALIDATION_PATHS[^[]*\[[^\]]*\]/g],
  ['haproxy/haproxy.cfg', /^ *acl validation path .*$/gm],
  ['kubernetes/base/haproxy.cfg', /^ *acl validation path .*$/gm],
])('infra/%s forwards exactly the paths of the validation API to validators', (file, list) => {
  const listed = [...read(file).matchAll(list)].flatMap(([match]) => match.match(/\/api\/v\d[\w/-]*/g) ?? [])
  expect(listed.toSorted()).toEqual(paths)
})

test('infra/nginx/nginx.conf forwards exactly the paths of the validation API to validators', () => {
  const config = read('nginx/nginx.conf')
  const [, pattern = ''] = /^ *location ~ (\^\/api\S+) \{$/m.exec(config) ?? []
  const exact = [...config.matchAll(/^ *location = (\/api\S+) \{$/gm)].map(([, path]) => `^${path}$`)
  const location = new RegExp([pattern, ...exact].join('|'))
  // The pattern must match neither a path under a version without this endpoint, nor a path with characters added or removed.
  const endings = paths.map((path) => path.replace(/^\/api\/v\d/, ''))
  const similar = [1, 2, 3].flatMap((version) => endings.map((ending) => `/api/v${version}${ending}`))
  const others = paths.flatMap((path) => [`${path}/`, `${path}x`, `/x${path}`, path.slice(0, -1)])
  expect(new Set([...similar, ...others].filter((path) => location.test(path)))).toEqual(new Set(paths))
})
