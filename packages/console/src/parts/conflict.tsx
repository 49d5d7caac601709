/** Shows what others have saved since a window opened, beside the edited values. */

import { Alert } from '@mantine/core'

import type { ConflictError } from '../api/edit.ts'
import { Differences, FieldLabel, FieldValue } from './differences-list.tsx'
import { changesBetween } from './differences.ts'

export function Conflict({ conflict: { before, edited, current } }: { conflict: ConflictError }) {
  const mine = changesBetween(current, edited)
  const fields = new Set(mine.map(({ field }) => field))
  const theirs = changesBetween(before, current).filter(({ field }) => !fields.has(field))
  return (
    <Alert color="yellow" title="Somebody else has saved changes meanwhile" role="alert">
      <p>Nothing of yours is saved yet. Choose which values stay.</p>
      <table className="conflict">
        <thead>
          <tr>
            <th>Field</th>
            <th>Saved meanwhile</th>
            <th>Yours</th>
          </tr>
        </thead>
        <tbody>
          {mine.map(({ field, before: saved, after }) => (
            <tr key={field}>
              <th scope="row">
                <FieldLabel field={field} />
              </th>
              <td>
                <FieldValue field={field} value={saved} />
              </td>
              <td>
                <FieldValue field={field} value={after} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {theirs.length > 0 && (
        <>
          <p>Also changed meanwhile, and kept in any case:</p>
          <Differences list={theirs} />
        </>
      )}
    </Alert>
  )
}
