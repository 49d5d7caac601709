/** A link to a license that shows its key. */

import { TextLink } from './parts.tsx'
import { useNameOf } from './search-field.tsx'

/** Reads the key by the id. Shows the beginning of the id until then, and when the license is deleted. */
export function LicenseKey({ id }: { id: string }) {
  const key = useNameOf('license', id)
  return (
    <TextLink href={`/licenses/${id}`}>
      <span className="mono">{key === '' ? id.slice(0, 8) : key}</span>
    </TextLink>
  )
}
