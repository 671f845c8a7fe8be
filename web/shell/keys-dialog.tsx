import type { ReactNode } from 'react'
import { KEY_HELP } from '../data/keys.ts'
import { Sheet } from '../parts/dialog.tsx'

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
