/** Lists credentials of one kind. One window creates a credential, and another window shows the secret once. */

import { Button, Text, TextInput } from '@mantine/core'
import { useState } from 'react'

import { useName } from '../api/names.ts'
import { text } from '../text.ts'
import { ProductField } from './choose.tsx'
import { ConfirmButton } from './confirm.tsx'
import { FormWindow } from './form.tsx'
import { Copyable, Part, When } from './parts.tsx'
import { permissionsText, PermissionsField, READ_ONLY } from './permissions-field.tsx'
import { type Column, type ListState, ListTable } from './table.tsx'
import { Window } from './window.tsx'

const t = text.credentials

interface Texts {
  title: string
  hint: string
  new: string
  none: string
  revokeTitle: string
  revokeHint: string
}

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

export interface Draft {
  name: string
  productId: string | null
  permissions: readonly string[]
}

function ProductName({ id }: { id: string }) {
  return useName(id)
}

/** Returns the column that shows what the credential permits. */
function scopeColumn(isApiKey: boolean): Column<Shown> {
  if (!isApiKey)
    return {
      title: text.team.may,
      cell: ({ permissions }) => <Text size="sm">{permissionsText(permissions ?? [])}</Text>,
    }
  return {
    title: text.licenses.product,
    cell: ({ productId }) => (productId ? <ProductName id={productId} /> : <Text size="sm">{t.allProducts}</Text>),
  }
}

function SecretWindow({ secret, onClose }: { secret: string | null; onClose: () => void }) {
  if (secret === null) return null
  return (
    <Window onClose={onClose} title={t.secret} size="lg">
      <Copyable value={secret} />
    </Window>
  )
}

/** `own` contains the permissions of the person, who can grant no others. */
export function CredentialList({
  list,
  onCreate,
  onRevoke,
  isApiKey = false,
  own,
  texts,
}: {
  list: ListState<Shown>
  onCreate: (draft: Draft) => Promise<{ secret?: string | undefined }>
  onRevoke: (id: string) => Promise<unknown>
  isApiKey?: boolean
  own: readonly string[]
  texts: Texts
}) {
  const [draft, setDraft] = useState<Draft | null>(null)
  const [secret, setSecret] = useState<string | null>(null)
  const columns: readonly Column<Shown>[] = [
    { title: t.nameOf, cell: ({ name }) => name },
    { title: t.prefix, cell: ({ prefix }) => <span className="mono">{prefix}…</span> },
    scopeColumn(isApiKey),
    { title: t.lastUsed, cell: ({ lastUsedAt }) => <When at={lastUsedAt} /> },
    { title: text.licenses.createdOn, cell: ({ createdAt }) => <When at={createdAt} /> },
    {
      title: text.actions,
      cell: ({ id, name, prefix }) => (
        <ConfirmButton
          size="xs"
          label={t.revoke}
          title={texts.revokeTitle}
          object={
            <>
              <bdi>{name}</bdi> <span className="mono">{prefix}…</span>
            </>
          }
          consequence={texts.revokeHint}
          onConfirm={() => onRevoke(id)}
        />
      ),
    },
  ]
  const open = () =>
    setDraft({ name: '', productId: null, permissions: READ_ONLY.filter((permission) => own.includes(permission)) })
  return (
    <Part
      title={texts.title}
      hint={texts.hint}
      action={
        <Button variant="default" onClick={open}>
          {texts.new}
        </Button>
      }
    >
      <ListTable list={list} columns={columns} empty={texts.none} label={texts.title} />
      {draft && (
        <FormWindow
          title={texts.new}
          action={texts.new}
          opened
          onClose={() => setDraft(null)}
          onSubmit={async () => setSecret((await onCreate(draft)).secret ?? null)}
        >
          {(errors) => (
            <>
              <TextInput
                label={t.nameOf}
                description={t.nameHint}
                value={draft.name}
                onChange={(event) => setDraft({ ...draft, name: event.currentTarget.value })}
                error={errors['name']}
                required
                data-autofocus
              />
              {isApiKey ? (
                <ProductField
                  label={t.onlyProduct}
                  value={draft.productId}
                  onChange={(productId) => setDraft({ ...draft, productId })}
                  error={errors['productId']}
                  isOptional
                />
              ) : (
                <PermissionsField
                  value={draft.permissions}
                  onChange={(permissions) => setDraft({ ...draft, permissions })}
                  own={own}
                />
              )}
            </>
          )}
        </FormWindow>
      )}
      <SecretWindow secret={secret} onClose={() => setSecret(null)} />
    </Part>
  )
}
