/**
 * Tests that `/openapi.json` passes the recommended rules of Redocly and Spectral without an error. Spectral's rules for examples take
 * half a minute, so the last test checks every example instead.
 */

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import spectral from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import addFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../../src/endpoints.ts'
import { createOpenApi } from '../../src/openapi/document.ts'

const json = JSON.stringify(createOpenApi(endpoints))
const document = z.record(z.string(), z.unknown()).parse(JSON.parse(json))

test('the document passes the recommended rules of Redocly', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-openapi-'))
  const path = join(folder, 'openapi.json')
  writeFileSync(path, json)
  const redocly = fileURLToPath(new URL('../../node_modules/.bin/redocly', import.meta.url))
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const args = ['lint', '--extends=recommended', '--format=json', path]
  const { stdout } = await promisify(execFile)(redocly, args, { cwd: folder, env, maxBuffer: 2 ** 24 })
  rmSync(folder, { recursive: true })
  const report = z.object({
    totals: z.object({ errors: z.int() }),
    problems: z.array(z.object({ ruleId: z.string() })),
  })
  const { totals, problems } = report.parse(JSON.parse(stdout))
  expect(totals.errors).toBe(0)
  // The schema of a record with fixed names requires these names without listing them as properties.
  expect(problems.filter(({ ruleId }) => ruleId !== 'no-required-schema-properties-undefined')).toEqual([])
})

test('the document passes the recommended rules of Spectral', async () => {
  const linter = new spectral.Spectral()
  const rules = { 'oas3-valid-media-example': 'off', 'oas3-valid-schema-example': 'off' } as const
  linter.setRuleset({ extends: [[{ extends: [], ...rulesets.oas }, 'recommended']], rules })
  const found = await linter.run(document)
  // The document cannot name a contact, because each installation has a different one.
  expect(found.map(({ code }) => code)).toEqual(['info-contact'])
})

const object = z.record(z.string(), z.unknown())

/** Yields every example of the document with the JSON pointer to its schema. */
function* examplesOf(node: unknown, place: string): Generator<{ schema: string; value: unknown }> {
  if (Array.isArray(node)) for (const [i, item] of node.entries()) yield* examplesOf(item, `${place}/${i}`)
  const fields = object.safeParse(node).data
  if (Array.isArray(node) || !fields) return
  const isSchema = 'type' in fields || 'anyOf' in fields || 'oneOf' in fields
  const schema = isSchema ? place : `${place}/schema`
  if ('example' in fields && (isSchema || 'schema' in fields)) yield { schema, value: fields['example'] }
  if ('schema' in fields)
    for (const example of Object.values(object.safeParse(fields['examples']).data ?? {})) {
      const { value, $ref } = object.parse(example)
      yield { schema, value: typeof $ref === 'string' ? object.parse(at($ref))['value'] : value }
    }
  for (const [name, item] of Object.entries(fields))
    if (name !== 'example' && name !== 'examples')
      yield* examplesOf(item, `${place}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`)
}

/** Returns the value to which a reference into the document points. */
function at(reference: string): unknown {
  const parts = reference.split('/').slice(1)
  return parts.reduce<unknown>((node, part) => object.parse(node)[part], document)
}

test('every example in the document is valid', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addFormat('base64', /^[A-Za-z0-9+/]*={0,2}$/)
  ajv.addSchema(document, 'document')
  const wrong: string[] = []
  let count = 0
  for (const { schema, value } of examplesOf(document, '')) {
    count++
    const validate = ajv.getSchema(`document#${schema.split('/').map(encodeURIComponent).join('/')}`)
    if (validate?.(value) !== true)
      wrong.push(`${schema}: ${JSON.stringify(value)} ${ajv.errorsText(validate?.errors)}`)
  }
  expect(wrong).toEqual([])
  expect(count).toBeGreaterThan(500)
})
