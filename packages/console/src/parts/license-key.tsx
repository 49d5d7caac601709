import { useName } from '../api/names.ts'
import { TextLink } from './parts.tsx'

/** Shows the beginning of the id until the key has been read, and for a deleted license. */
export function LicenseKey({ id }: { id: string }) {
  const key = useName(id)
  return (
    <TextLink href={`/licenses/${id}`}>
      <span className="mono">{key === '' ? id.slice(0, 8) : key}</span>
    </TextLink>
  )
}
