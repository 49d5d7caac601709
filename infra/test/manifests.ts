import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { parseAllDocuments } from 'yaml'
import { z } from 'zod'

export const INFRA = fileURLToPath(new URL('..', import.meta.url))

/** Returns the documents of a YAML file. Throws if the file or one of its anchors is invalid. */
export function readYaml(path: string): unknown[] {
  return parseAllDocuments(readFileSync(join(INFRA, path), 'utf8'), { merge: true, strict: true }).map((document) => {
    if ('errors' in document && document.errors.length > 0) throw document.errors[0] ?? new Error(path)
    return document.toJS({}) as unknown
  })
}

export const manifestSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()).optional() }),
  spec: z.record(z.string(), z.unknown()).optional(),
})
export type Manifest = z.infer<typeof manifestSchema>

/** Returns the Kubernetes manifests of the base and the example of the secret. */
export function readManifests(): Manifest[] {
  return readdirSync(join(INFRA, 'kubernetes/base'))
    .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
    .map((name) => `kubernetes/base/${name}`)
    .concat('kubernetes/secret.example.yaml')
    .flatMap((path) => readYaml(path).map((document) => manifestSchema.parse(document)))
}

/** Returns the YAML block that begins with `beginning` from a Markdown file. */
export function documentedYaml(path: string, beginning: string): string {
  const blocks = readFileSync(join(INFRA, '..', path), 'utf8').match(/(?<=^```yaml\n)[^]*?(?=^```$)/gm) ?? []
  const found = blocks.find((block) => block.startsWith(beginning))
  if (found === undefined) throw new Error(`${path} has no YAML block that begins with ${beginning}`)
  return found
}
