/**
 * Builds the endpoints that most resources have: list, create, read, change, delete. Each builder fills in method, path, operation id,
 * summary, status and response schema. The caller supplies the handler and all other fields of the definition.
 */

import { idParams, listQuery, page, type Permission } from '@keyward/contract'
import { z } from 'zod'

import {
  BASE_PATH,
  type Definition,
  type Endpoint,
  type Tag,
  type VendorCall,
  vendorEndpoint,
} from '../http/endpoint.ts'
import type { Page } from '../http/pagination.ts'

const noParams = z.strictObject({})

export interface CrudOptions<Schema extends z.ZodType, Params extends z.ZodObject, ItemParams extends z.ZodObject> {
  tag: Tag
  /** The path of the list, such as `/products`. */
  path: string
  /** The path of one resource. Default: the list's path with `/{id}`. */
  itemPath?: string
  /** The name of the resource in operation ids. `ApiKey` yields `createApiKey` and `listApiKeys`. */
  operation: string
  /** The name of the resource in summaries, with its article, such as `an API key`. */
  noun: string
  /** The plural in summaries. Default: the noun without article, with an s. */
  nouns?: string
  readPermission: Permission
  writePermission: Permission
  /** The schema of one resource in responses. */
  schema: Schema
  params?: Params
  itemParams?: ItemParams
}

/** The fields of a definition that differ between resources. */
type Details = Pick<
  Definition<z.ZodObject, z.ZodObject, unknown, unknown>,
  'description' | 'errors' | 'propagates' | 'secrets' | 'maxBodyBytes'
> & { summary?: string }

type Handler<Params extends z.ZodObject, Query, Body, Response> = (
  call: VendorCall<z.output<Params>, Query, Body>,
) => Promise<Response>

/** Replaces the parameters of a path, such as `/members/{id}/access-tokens`, with their values. */
function fillPath(path: string, params: object): string {
  const values = new Map<string, unknown>(Object.entries(params))
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values.get(name)))
}

export function crudEndpoints<
  Schema extends z.ZodType,
  Params extends z.ZodObject = typeof noParams,
  ItemParams extends z.ZodObject = typeof idParams,
>(options: CrudOptions<Schema, Params, ItemParams>) {
  type Shown = z.output<Schema>
  const { tag, path, operation, noun, schema, readPermission, writePermission } = options
  const { nouns = `${noun.replace(/^an? /, '')}s`, itemPath = `${path}/{id}` } = options
  const itemParams = given<ItemParams>(options.itemParams, idParams)
  const common = { tag, path, ...(options.params && { params: options.params }) }
  const item = { tag, path: itemPath, params: itemParams }

  return {
    list<Filter extends z.ZodRawShape>(
      filter: Filter,
      handle: Handler<Params, z.output<ReturnType<typeof listQuery<Filter>>>, unknown, Page<Shown>>,
    ): Endpoint {
      const operationId = `list${operation}s`
      const definition = { operationId, summary: `List ${nouns}`, query: listQuery(filter) }
      return vendorEndpoint(
        readPermission,
        { ...common, ...definition, method: 'get', status: 200, response: page(schema) },
        handle,
      )
    },

    /** Builds the endpoint that creates a resource. `response` is the schema of a response with additional fields, such as a secret. */
    create<Body, Created extends { id: string } = Shown & { id: string }>(
      { body, response, ...details }: Details & { body: z.ZodType<Body>; response?: z.ZodType<Created> },
      handle: Handler<Params, unknown, Body, NoInfer<Created>>,
    ): Endpoint {
      const definition = { operationId: `create${operation}`, summary: `Create ${noun}`, body, ...details }
      return vendorEndpoint(
        writePermission,
        { ...common, ...definition, method: 'post', status: 201, response: response ?? schema },
        async (call) => {
          const created = await handle(call)
          call.headers['location'] = `${BASE_PATH}${fillPath(path, call.params)}/${created.id}`
          return created
        },
      )
    },

    read(details: Details, handle: Handler<ItemParams, unknown, unknown, Shown>): Endpoint {
      const definition = { operationId: `read${operation}`, summary: `Read ${noun}`, ...details }
      return vendorEndpoint(
        readPermission,
        { ...item, ...definition, method: 'get', status: 200, response: schema },
        handle,
      )
    },

    change<Body>(
      { body, ...details }: Details & { body: z.ZodType<Body> },
      handle: Handler<ItemParams, unknown, Body, Shown>,
    ): Endpoint {
      const definition = { operationId: `update${operation}`, summary: `Change ${noun}`, body, ...details }
      return vendorEndpoint(
        writePermission,
        { ...item, ...definition, method: 'patch', status: 200, response: schema },
        handle,
      )
    },

    /** Builds the endpoint that deletes a resource. `verb` names the deletion in the operation id and the summary. */
    delete(
      { verb = 'delete', ...details }: Details & { verb?: 'delete' | 'revoke' },
      handle: Handler<ItemParams, unknown, unknown, void>,
    ): Endpoint {
      const name = verb === 'delete' ? 'Delete' : 'Revoke'
      const definition = { operationId: `${verb}${operation}`, summary: `${name} ${noun}`, ...details }
      return vendorEndpoint(writePermission, { ...item, ...definition, method: 'delete', status: 204 }, handle)
    },
  }
}

/**
 * Returns the schema, or `fallback` when the schema is undefined. A caller without a schema leaves `Schema` at its default, the type of the
 * fallback.
 */
function given<Schema extends z.ZodObject>(schema: Schema | undefined, fallback: z.ZodObject): Schema
function given(schema: z.ZodObject | undefined, fallback: z.ZodObject): z.ZodObject {
  return schema ?? fallback
}
