/** The windows of the actions on a license that need fields or a confirmation. */

import { type License, licenses } from '@keyward/contract'
import { products } from '@keyward/contract/management/products'
import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../../api/client.ts'
import { useEdit } from '../../api/edit.ts'
import { useCall, useRead } from '../../api/hooks.ts'
import { useName } from '../../api/names.ts'
import { Confirm } from '../../parts/confirm.tsx'
import { EntitlementsField, entitlementsOf, hasProblem, rowsOf } from '../../parts/entitlements-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { KeyText } from '../../parts/parts.tsx'
import { MachineFile } from './machine-file.tsx'
import { bodyOf, type Policy, PolicyFields, policyOf, restorePolicy } from './policy-fields.tsx'
const TYPED_CHARACTERS = 4

export type Opened = 'terms' | 'machineFile' | 'entitlements' | 'replaceKey' | 'suspend' | 'revoke' | 'delete'

/** The window for changing the terms. */
function EditTerms({ license: one, onClose }: { license: License; onClose: () => void }) {
  const [policy, setPolicy] = useState<Policy>(() => policyOf(one))
  const saving = useEdit(licenses.updateLicense, one, {
    done: 'Saved the license.',
    undo: (version) => restorePolicy(one, version),
  })
  return (
    <FormWindow
      title="Change the terms"
      action="Save"
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ policy: bodyOf(policy, one) })}
      size="lg"
    >
      {(errors) => (
        <PolicyFields
          value={policy}
          onChange={(part) => setPolicy({ ...policy, ...part })}
          errors={errors}
          endsAt={one.policy.expiresAt}
        />
      )}
    </FormWindow>
  )
}

/** The window for changing the overrides of the product's entitlements. */
function EditEntitlements({ license: one, onClose }: { license: License; onClose: () => void }) {
  const { data } = useRead(products.readProduct, { params: { id: one.productId } })
  const [rows, setRows] = useState(() => rowsOf(one.entitlements))
  const saving = useEdit(licenses.updateLicense, one, { done: 'Saved the entitlements.' })
  return (
    <FormWindow
      title="Entitlements"
      action="Save"
      onClose={onClose}
      onSubmit={() => saving.mutateAsync({ entitlements: entitlementsOf(rows) })}
      size="lg"
      isInvalid={hasProblem(rows)}
    >
      {(errors) => (
        <EntitlementsField rows={rows} onChange={setRows} defaults={data?.entitlements ?? {}} errors={errors} />
      )}
    </FormWindow>
  )
}

/** The window of an action that needs fields or a confirmation. */
export function Dialogs({ license: one, opened, onClose }: { license: License; opened: Opened; onClose: () => void }) {
  const { id, key } = one
  const [, navigate] = useLocation()
  const customer = useName(one.customerId)
  const input = { params: { id } }
  const remove = useCall(licenses.deleteLicense, { done: 'Deleted the license.', onDone: () => navigate('/licenses') })
  const replaceKey = useCall(licenses.replaceLicenseKey, { done: 'Replaced the license key.' })
  const [reason, setReason] = useState('')
  const withReason = { ...input, ...(reason.trim() !== '' && { body: { reason: reason.trim() } }) }
  const suspend = useCall(licenses.suspendLicense, {
    done: 'Suspended the license.',
    undo: () => call(licenses.reinstateLicense, input),
  })
  const revoke = useCall(licenses.revokeLicense, { done: 'Revoked the license.' })
  const confirm = {
    object: (
      <>
        <KeyText value={key} />
        <span className="sub">{customer}</span>
      </>
    ),
    onClose,
  }
  const reasoned = {
    fields: (
      <TextInput
        label="Reason"
        description="Optional. Members see it among the changes, and webhooks contain it."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        data-autofocus={opened === 'suspend' || undefined}
      />
    ),
  }
  const typed = key.slice(-TYPED_CHARACTERS)
  switch (opened) {
    case 'terms':
      return <EditTerms license={one} onClose={onClose} />
    case 'entitlements':
      return <EditEntitlements license={one} onClose={onClose} />
    case 'machineFile':
      return <MachineFile license={one} onClose={onClose} />
    case 'replaceKey':
      return (
        <Confirm
          {...confirm}
          label="Replace the key"
          title="Give this license a new key?"
          consequence="The old key stops working on all machines. Send the new key to your customer."
          onConfirm={() => replaceKey.mutateAsync(input)}
        />
      )
    case 'suspend':
      return (
        <Confirm
          {...confirm}
          {...reasoned}
          label="Suspend"
          title="Suspend this license?"
          consequence="Within a moment, its checks are rejected with SUSPENDED. You can reinstate it later."
          onConfirm={() => suspend.mutateAsync(withReason)}
        />
      )
    case 'revoke':
      return (
        <Confirm
          {...confirm}
          {...reasoned}
          label="Revoke"
          title="Revoke this license permanently?"
          consequence="All checks are rejected with REVOKED. A revocation cannot be undone; suspend the license if you are not sure."
          typed={typed}
          onConfirm={() => revoke.mutateAsync(withReason)}
        />
      )
    case 'delete':
      return (
        <Confirm
          {...confirm}
          label="Delete"
          title="Delete this license permanently?"
          consequence="Its machines, alerts and access rules are deleted too, and its checks are rejected with NOT_FOUND. A deletion cannot be undone."
          typed={typed}
          onConfirm={() => remove.mutateAsync(input)}
        />
      )
    default:
      return opened satisfies never
  }
}
