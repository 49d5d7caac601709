import { z } from 'zod'

const page = <T>(item: z.ZodType<T>) => z.object({ data: z.array(item), nextCursor: z.string().nullable() })
export const withId = z.object({ id: z.string() })

export class Api {
  readonly #url: string
  readonly #token: string

  /** `url` is the base address of the management service. */
  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  /** Returns an `Api` for the same address with another credential. */
  as(token: string): Api {
    return new Api(this.#url, token)
  }

  /** Sends a request and returns its JSON response. Throws if the response is an error. */
  async send<T>(
    method: 'POST' | 'PATCH' | 'PUT' | 'GET',
    path: string,
    schema: z.ZodType<T>,
    body?: object,
  ): Promise<T> {
    return schema.parse(await (await this.#request(method, path, body)).json())
  }

  async delete(path: string): Promise<void> {
    await this.#request('DELETE', path)
  }

  /** Returns all items of a list. */
  async all<T>(path: string, item: z.ZodType<T>): Promise<T[]> {
    const items: T[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const found: z.output<ReturnType<typeof page<T>>> = await this.send(
        'GET',
        `${path}?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`,
        page(item),
      )
      items.push(...found.data)
      cursor = found.nextCursor
    }
    return items
  }

  async #request(method: string, path: string, body?: object): Promise<Response> {
    const response = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok)
      throw new Error(
        `Cannot create the demo data: ${method} ${path} returned ${response.status}: ${await response.text()}`,
      )
    return response
  }
}
