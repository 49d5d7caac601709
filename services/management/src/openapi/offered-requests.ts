/**
 * Completes the requests that a documentation page offers to send. Each body gets an example that consists of the examples of the required
 * fields. Optional parameters get no example, because the page would send it, and a request with an invented filter or cursor fails.
 */

type Json = Record<string, unknown>

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the object at the path, or undefined when there is none. */
function find(node: unknown, ...path: readonly string[]): Json | undefined {
  const found = path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), node)
  return isObject(found) ? found : undefined
}

/** Returns an example of a value of the schema. Throws when a required field has no example. */
export function exampleOf(schema: Json, components: Json | undefined): unknown {
  if ('example' in schema) return schema['example']
  if ('default' in schema) return schema['default']
  const { $ref, required } = schema
  const target = typeof $ref === 'string' ? find(components, $ref.replace('#/components/schemas/', '')) : undefined
  if (target) return exampleOf(target, components)
  const items = find(schema, 'items')
  if (items) return [exampleOf(items, components)]
  const properties = find(schema, 'properties')
  if (!properties) throw new Error(`The schema has no example: ${JSON.stringify(schema)}`)
  const names = Object.keys(properties).filter((name) => Array.isArray(required) && required.includes(name))
  return Object.fromEntries(names.map((name) => [name, exampleOf(find(properties, name) ?? {}, components)]))
}

/** Moves the example of an optional parameter into its description. */
function describeExample(parameter: Json): void {
  const schema = find(parameter, 'schema')
  if (parameter['required'] === true || !schema) return
  const { example, description, enum: values } = schema
  delete schema['example']
  if (typeof description !== 'string') return
  const isShown = typeof example === 'string' && values === undefined
  parameter['description'] = isShown ? `${description} For example \`${example}\`.` : description
}

/** Completes the requests of a document in place. */
export function completeRequests(document: object): void {
  const components = find(document, 'components', 'schemas')
  for (const item of Object.values(find(document, 'paths') ?? {}))
    for (const operation of Object.values(isObject(item) ? item : {})) {
      if (!isObject(operation)) continue
      const { parameters } = operation
      if (Array.isArray(parameters)) for (const one of parameters) if (isObject(one)) describeExample(one)
      const content = find(operation, 'requestBody', 'content', 'application/json')
      const schema = find(content, 'schema')
      if (content && schema) content['example'] = exampleOf(schema, components)
    }
}
