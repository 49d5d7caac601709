/** Lists credentials of one kind. One window creates a credential, and another window shows the secret once. */

import type { Permission } from '@keyward/contract'
import { Button, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'

import { useMay } from '../api/me.ts'
import { text } from '../text.ts'
import { ProductField } from './choose.tsx'
import { ConfirmButton } from './confirm.tsx'
import { useFields } from './fields.ts'
import { FormWindow } from './form.tsx'
import { Name } from './name.tsx'
import { Part, When } from './parts.tsx'
import { permissionsText, PermissionsField, READ_ONLY } from './permissions-field.tsx'
import { SecretWindow } from './secret-window.tsx'
import { type Column, type ListState, ListTable } from './table.tsx'

/** The fields that are shown. Only API keys have `productId`, and only tokens have `permissions`. */
interface Shown {
  id: string
  name: string
  prefix: string
  lastUsedAt: string | null
  createdAt: string
  productId?: string | null
  permissions?: readonly string[]
}

interface Draft {
  name: string
  productId: string | null
  permissions: Permission[]
}

/** Returns the column that shows what the credential permits. */
function scopeColumn(isApiKey: boolean): Column<Shown> {
  if (!isApiKey)
    return {
      title: 'May',
      cell: ({ permissions }) => <Text size="sm">{permissionsText(permissions ?? [])}</Text>,
    }
  return {
    title: 'Product',
    cell: ({ productId }) => (productId ? <Name id={productId} /> : <Text size="sm">all products</Text>),
  }
}

/** The window that creates a credential. A person can grant no permissions that the person lacks. */
function CreateWindow({
  title,
  isApiKey,
  onClose,
  onSubmit,
}: {
  title: string
  isApiKey: boolean
  onClose: () => void
  onSubmit: (draft: Draft) => Promise<unknown>
}) {
  const may = useMay()
  const {
    values,
    change,
    text: field,
  } = useFields<Draft>({
    name: '',
    productId: null,
    permissions: READ_ONLY.filter(may),
  })
  return (
    <FormWindow title={title} action={title} onClose={onClose} onSubmit={() => onSubmit(values)}>
      {(errors) => (
        <>
          <TextInput
            label="Name"
            description="Its purpose, such as the name of an app."
            {...field('name', errors)}
            required
            data-autofocus
          />
          {isApiKey ? (
            <ProductField
              label="Only for this product"
              value={values.productId}
              onChange={(productId) => change({ productId })}
              error={errors['productId']}
              isOptional
            />
          ) : (
            <PermissionsField value={values.permissions} onChange={(permissions) => change({ permissions })} />
          )}
        </>
      )}
    </FormWindow>
  )
}

export function CredentialList({
  title,
  hint,
  create,
  none,
  revokeHint,
  list,
  onCreate,
  onRevoke,
  isApiKey = false,
}: {
  title: string
  hint: string
  /** The label of the button and the title of the window that create a credential. */
  create: string
  none: string
  revokeHint: string
  list: ListState<Shown>
  onCreate: (draft: Draft) => Promise<{ secret?: string | undefined }>
  onRevoke: (id: string) => Promise<unknown>
  isApiKey?: boolean
}) {
  const [isCreating, creating] = useDisclosure(false)
  const [secret, setSecret] = useState<string | null>(null)
  const columns: readonly Column<Shown>[] = [
    { title: 'Name', cell: ({ name }) => name },
    { title: 'Begins with', cell: ({ prefix }) => <span className="mono">{prefix}…</span> },
    scopeColumn(isApiKey),
    { title: 'Last used', cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: 'Created', cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, name, prefix }) => (
        <ConfirmButton
          size="xs"
          label="Revoke"
          title={`Revoke this ${isApiKey ? 'API key' : 'token'}?`}
          object={
            <>
              <bdi>{name}</bdi> <span className="mono">{prefix}…</span>
            </>
          }
          consequence={revokeHint}
          onConfirm={() => onRevoke(id)}
        />
      ),
    },
  ]
  return (
    <Part
      title={title}
      hint={hint}
      action={
        <Button variant="default" onClick={creating.open}>
          {create}
        </Button>
      }
    >
      <ListTable list={list} columns={columns} empty={none} label={title} />
      {isCreating && (
        <CreateWindow
          title={create}
          isApiKey={isApiKey}
          onClose={creating.close}
          onSubmit={async (draft) => setSecret((await onCreate(draft)).secret ?? null)}
        />
      )}
      {secret !== null && (
        <SecretWindow
          title="Copy the secret now. It is not shown again."
          secret={secret}
          onClose={() => setSecret(null)}
        />
      )}
    </Part>
  )
}
