import { type ReactNode, useRef, useState } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { reload } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import { Button } from '../../parts/button.tsx'
import { useTask } from '../../parts/task.ts'
import { dropRepeat } from './approval-card.tsx'
import { useSteady } from './steady.ts'

interface SettleButtonsProps {
  readonly nodeId: string
  /** The hash that the call beside the buttons was shown with; undefined while it is not shown yet. */
  readonly seen: string | undefined
  /** Whether nothing of the call is held back. */
  readonly isWhole: boolean
  readonly isGone?: boolean
}

/** The three words that a person can say of a call whose effect is uncertain. */
export function SettleButtons({ nodeId, seen, isWhole, isGone = false }: SettleButtonsProps): ReactNode {
  const task = useTask()
  const [isSaid, setSaid] = useState(false)
  const place = useRef<HTMLSpanElement>(null)
  const steady = useSteady(place, 'button')
  const maySettle = useMay('approve')
  const isLive = useConnection().kind === 'live'
  if (!maySettle) return null
  const isPossible = isLive && !task.isBusy && !isSaid && !isGone && isWhole && seen !== undefined
  const settle = (word: SettleChoice, done: string) => async () => {
    if (!isPossible || !steady.isNow()) return
    if (await task.run(() => client.settle(nodeId, { ...word, seen }), done)) setSaid(true)
    reload('lists ')
  }
  const isOff = !isPossible || !steady.isSteady
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only keeps held keys from its buttons
    <span className="row wrap" ref={place} onKeyDown={dropRepeat}>
      <Button
        isSmall
        aria-disabled={isOff}
        onClick={settle({ happened: true }, 'Noted: it happened. Nothing is run again.')}
      >
        It happened
      </Button>
      <Button isSmall aria-disabled={isOff} onClick={settle({ happened: false }, 'Noted: it did not. It runs again.')}>
        It did not, run it
      </Button>
      <Button isSmall look="quiet" aria-disabled={isOff} onClick={settle({ leave: true }, 'Left as it is')}>
        Leave it
      </Button>
    </span>
  )
}

type SettleChoice = { readonly happened: true } | { readonly happened: false } | { readonly leave: true }
