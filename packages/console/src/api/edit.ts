/**
 * Changes a resource that a window shows, without overwriting what others have saved since the window opened (docs/api.md#m18). A change
 * contains only the fields that the person has edited, and the version of the resource.
 */

import type { AnyInput, BodyOf, Operation, ResultOf } from '@keyward/contract/operations'
import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { z } from 'zod'

import { ApiError, callAndApply } from './client.ts'
import { useMutating } from './hooks.ts'

interface Resource {
  id: string
  updatedAt: string
}
type Fields = Readonly<Record<string, unknown>>

/** Reports that the resource has changed since it was read. Another attempt replaces the saved values by the edited ones. */
export class ConflictError extends Error {
  override readonly name = 'ConflictError'
  readonly before: object
  readonly edited: object
  readonly current: object

  constructor(before: object, edited: object, current: object) {
    super()
    this.before = before
    this.edited = edited
    this.current = current
  }
}

/** The field whose members the API merges. All other fields are replaced as a whole. */
const MERGED = 'policy'

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** Returns the fields that differ from the resource. */
function editedFields(before: Fields, fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name, value]) => value !== undefined && JSON.stringify(value) !== JSON.stringify(before[name]))
      .map(([name, value]) => [name, name === MERGED ? editedFields(fieldsOf(before[name]), fieldsOf(value)) : value]),
  )
}

/** Returns the values of the resource for the same fields. */
function formerFields(before: Fields, edited: Fields): Fields {
  return Object.fromEntries(
    Object.entries(edited).map(([name, value]) => [
      name,
      name === MERGED ? formerFields(fieldsOf(before[name]), fieldsOf(value)) : before[name],
    ]),
  )
}

type EditOperation = Operation & { returns: z.ZodType<Resource> }

interface Options<Create extends Operation> {
  done: string
  /** Restores the former values, if the resource still has the version. Default: changes the edited fields back. */
  undo?: (version: string) => Promise<unknown>
  /** The operation that creates the resource, if `before` is null. */
  create?: Create
  onCreated?: (created: ResultOf<Create>) => void
}

/**
 * Returns a mutation whose input is the body of the operation. `before` is the resource that the window shows when it opens; later values
 * are ignored. The undo of a change also fails if others have changed the resource since. Throws ConflictError.
 */
export function useEdit<One extends EditOperation, Create extends Operation = Operation>(
  operation: One,
  before: Resource | null,
  options: Options<Create>,
): { mutateAsync: (body: z.input<BodyOf<One>>) => Promise<unknown> }
export function useEdit(operation: Operation, before: Resource | null, options: Options<Operation>) {
  const { done, undo, create, onCreated } = options
  const [opened] = useState(before)
  const version = useRef(opened?.updatedAt)
  const queries = useQueryClient()
  const former = fieldsOf(opened)
  const send = async (body: Fields, of: string | undefined) => {
    const input: AnyInput = { params: { id: opened?.id }, body }
    return callAndApply(operation, input, { waits: true, ...(of !== undefined && { version: of }) })
  }
  const change = async (body: object) => {
    if (!opened && create) return callAndApply<Operation>(create, { body })
    const edited = editedFields(former, fieldsOf(body))
    try {
      return await send(edited, version.current)
    } catch (error) {
      if (!(error instanceof ApiError) || !error.problem.current) throw error
      const { current } = error.problem
      version.current = String(current['updatedAt'])
      await queries.invalidateQueries()
      throw new ConflictError(former, edited, current)
    }
  }
  return useMutating(change, {
    done,
    quiet: true,
    onDone: (saved) => opened === null && onCreated?.(saved),
    undo: (saved, body) => {
      const savedVersion = String(fieldsOf(saved)['updatedAt'])
      return undo ? undo(savedVersion) : send(formerFields(former, editedFields(former, fieldsOf(body))), savedVersion)
    },
    canUndo: () => opened !== null,
  })
}
