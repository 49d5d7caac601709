/**
 * Validates manifests against the schemas of several versions of Kubernetes. The packages contain one compiled schema validator per type.
 * These schema validators accept unknown fields, so this module also reports the fields that they never read.
 */

import { extname } from 'node:path'

import { z } from 'zod'

import type { Manifest } from './manifests.ts'

export const KUBERNETES_VERSIONS = ['1.27', '1.33', '1.34'] as const
export type KubernetesVersion = (typeof KUBERNETES_VERSIONS)[number]

interface Validator {
  (data: unknown): boolean
  errors?: readonly { instancePath: string; message?: string; params: object }[] | null
}

const moduleSchema = z.object({ validate: z.custom<Validator>((value) => typeof value === 'function') })

/** The API groups that the packages contain, with the spelling of each group in the names of types. */
const GROUPS: Readonly<Record<string, string>> = {
  '': 'Core',
  apps: 'Apps',
  autoscaling: 'Autoscaling',
  batch: 'Batch',
  policy: 'Policy',
  'networking.k8s.io': 'Networking',
}

/** Returns whether Kubernetes itself, not an operator, defines the type of the manifest. */
export function isBuiltIn({ apiVersion }: Manifest): boolean {
  return groupOf(apiVersion).group in GROUPS
}

/** Returns one sentence for each violation of the schema. The manifest must have a built-in type. */
export async function violations(manifest: Manifest, version: KubernetesVersion): Promise<string[]> {
  const { group, version: of } = groupOf(manifest.apiVersion)
  const name = `IoK8sApi${GROUPS[group]}${of[0]?.toUpperCase()}${of.slice(1)}${manifest.kind}`
  const { validate } = moduleSchema.parse(await importSchema(version, name))
  const read = new Map<object, Set<PropertyKey>>()
  const valid = validate(recorded(manifest, read))
  const errors = valid ? [] : (validate.errors ?? [])
  const where = `${manifest.kind} ${manifest.metadata.name}`
  return [
    ...errors.map(({ instancePath, params }) => `${where}${instancePath}: ${JSON.stringify(params)}`),
    ...unreadFields(manifest, read, '').map((path) => `${where}${path}: unknown field`),
  ]
}

/** Imports a schema validator by its file, because the packages of earlier versions do not export their schema validators. */
async function importSchema(version: KubernetesVersion, name: string): Promise<unknown> {
  const entry = import.meta.resolve(`kubernetes-models-${version}`)
  return import(new URL(`_schemas/${name}${extname(entry)}`, entry).href)
}

function groupOf(apiVersion: string): { group: string; version: string } {
  const [first = '', second] = apiVersion.split('/')
  return second === undefined ? { group: '', version: first } : { group: first, version: second }
}

/** Returns a proxy of `value` that stores in `read` the name of each property that is read. */
function recorded<T>(value: T, read: Map<object, Set<PropertyKey>>): T {
  if (typeof value !== 'object' || value === null) return value
  const keys = read.get(value) ?? new Set()
  read.set(value, keys)
  return new Proxy(value, {
    get: (target, key) => {
      keys.add(key)
      return recorded(Reflect.get(target, key), read)
    },
  })
}

function unreadFields(value: unknown, read: ReadonlyMap<object, ReadonlySet<PropertyKey>>, path: string): string[] {
  if (typeof value !== 'object' || value === null) return []
  const keys = read.get(value)
  // A schema validator reads no property of a value whose type has no schema.
  if (keys === undefined || keys.size === 0) return []
  return Object.entries(value).flatMap(([key, member]) =>
    keys.has(key) ? unreadFields(member, read, `${path}/${key}`) : [`${path}/${key}`],
  )
}
