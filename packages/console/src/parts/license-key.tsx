/** A link to a license that shows its key. */

import { useName } from '../api/names.ts'
import { TextLink } from './parts.tsx'

/** Reads the key by the id. Shows the beginning of the id until then, and when the license is deleted. */
export function LicenseKey({ id }: { id: string }) {
  const key = useName(id)
  return (
    <TextLink href={`/licenses/${id}`}>
      <span className="mono">{key === '' ? id.slice(0, 8) : key}</span>
    </TextLink>
  )
}
