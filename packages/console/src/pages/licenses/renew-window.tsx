import { type License, licenses } from '@keyward/contract'
import { useState } from 'react'

import { useEdit } from '../../api/edit.ts'
import { InputError } from '../../api/input.ts'
import { DateField } from '../../parts/date-field.tsx'
import { endOf, lastDayOf, lastDayText, usualEnds } from '../../parts/days.ts'
import { FormWindow } from '../../parts/form.tsx'
import { restorePolicy } from './policy-fields.tsx'

/** Returns why the license cannot be renewed until the end of the day, or undefined. */
function problemOf(day: string, endsAt: string | null): string | undefined {
  const end = Date.parse(endOf(day))
  if (Number.isNaN(end)) return 'Choose the last day.'
  if (end <= Date.now()) return 'This day is over. Choose a day in the future.'
  return endsAt !== null && end < Date.parse(endsAt)
    ? `The license ends on ${lastDayText(endsAt)} already. Change its terms to end it earlier.`
    : undefined
}

export function RenewWindow({ license: one, onClose }: { license: License; onClose: () => void }) {
  const { expiresAt } = one.policy
  const [day, setDay] = useState(() => usualEnds(expiresAt).year)
  const renew = useEdit(licenses.renewLicense, one, {
    done: 'Renewed the license.',
    undo: (version) => restorePolicy(one, version),
  })
  const min = lastDayOf(
    new Date(Math.max(Date.now() + 1, expiresAt === null ? 0 : Date.parse(expiresAt))).toISOString(),
  )
  const submit = async () => {
    const problem = problemOf(day, expiresAt)
    if (problem !== undefined) throw new InputError({ expiresAt: problem })
    await renew.mutateAsync({ expiresAt: endOf(day) })
  }
  return (
    <FormWindow title={`Renew ${one.key}`} action="Renew" onClose={onClose} onSubmit={submit}>
      {(errors) => (
        <DateField
          label="Expires"
          value={day}
          onChange={setDay}
          error={errors['expiresAt']}
          endsAt={expiresAt}
          min={min}
        />
      )}
    </FormWindow>
  )
}
