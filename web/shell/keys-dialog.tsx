import type { ReactNode } from 'react'
import { Sheet } from '../parts/dialog.tsx'
import { KEY_HELP } from '../window/keys.ts'

export function KeysDialog({ onClose }: { readonly onClose: () => void }): ReactNode {
  return (
    <Sheet title="Keys" onClose={onClose}>
      <ul className="keys">
        {KEY_HELP.map(([does, ...keys]) => (
          <li key={does}>
            {does}
            {keys.map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </li>
        ))}
      </ul>
    </Sheet>
  )
}
