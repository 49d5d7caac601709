/** The window that changes the mode, the expiry and the note of an access rule, and `allowSuspendedOrExpired` of an exclusion. */

import { type AccessRule, accessRules } from '@keyward/contract'
import { Checkbox, Text, Textarea } from '@mantine/core'
import { useState } from 'react'

import { useEdit } from '../../api/edit.ts'
import { expiryAt, ExpiryField, timeOf } from '../../parts/expiry-field.tsx'
import { FormWindow } from '../../parts/form.tsx'
import { text } from '../../text.ts'
import { ModeField } from './rule-fields.tsx'

const t = text.rules

export function EditRule({ rule, onClose }: { rule: AccessRule; onClose: () => void }) {
  const before = expiryAt(rule.expiresAt)
  const [mode, setMode] = useState(rule.mode)
  const [expiry, setExpiry] = useState(before)
  const [note, setNote] = useState(rule.note ?? '')
  const [isGenerous, setIsGenerous] = useState(rule.allowSuspendedOrExpired)
  const isExclusion = rule.kind === 'EXCLUSION'
  const saving = useEdit(accessRules.updateAccessRule, rule, { done: t.saved })
  const save = () => {
    const isMoved = expiry.preset !== before.preset || expiry.at !== before.at
    const body = {
      mode,
      note: note === '' ? null : note,
      ...(isMoved && { expiresAt: timeOf(expiry) }),
      ...(isExclusion && { allowSuspendedOrExpired: isGenerous }),
    }
    return saving.mutateAsync(body)
  }
  return (
    <FormWindow title={t.editTitle} action={text.save} opened onClose={onClose} onSubmit={save}>
      {(errors) => (
        <>
          <div>
            <Text fw={600} className="mono">
              {rule.value}
            </Text>
            <Text size="xs" c="dimmed">
              {t.editHint}
            </Text>
          </div>
          <ModeField value={mode} onChange={setMode} />
          <ExpiryField value={expiry} onChange={setExpiry} error={errors['expiresAt']} />
          {isExclusion && (
            <Checkbox
              label={t.evenExpired}
              checked={isGenerous}
              onChange={(event) => setIsGenerous(event.currentTarget.checked)}
            />
          )}
          <Textarea
            label={t.note}
            description={t.noteHint}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
            error={errors['note']}
          />
        </>
      )}
    </FormWindow>
  )
}
