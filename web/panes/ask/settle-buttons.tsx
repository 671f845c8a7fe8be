import type { ReactNode } from 'react'
import { client } from '../../data/client.ts'
import { useConnection } from '../../data/feed.ts'
import { reload, useRequest } from '../../data/request.ts'
import { useMay } from '../../data/server.ts'
import { useTask } from '../../data/task.ts'
import { Button } from '../../parts/button.tsx'

interface SettleButtonsProps {
  readonly nodeId: string
  /** The hash that the list showed the call with; left out where the page shows the call as its tree has it. */
  readonly seen?: string
}

/** The three words that a person can say of a call whose effect is uncertain. */
export function SettleButtons({ nodeId, seen: listed }: SettleButtonsProps): ReactNode {
  const task = useTask()
  const maySettle = useMay('approve')
  const isLive = useConnection().kind === 'live'
  const isAsked = maySettle && listed === undefined
  const loaded = useRequest(isAsked ? `doubt ${nodeId}` : null, () => client.node(nodeId)).value?.seen
  const seen = listed ?? loaded ?? null
  if (!maySettle) return null
  const settle = (word: Word, done: string) => () => {
    if (seen === null) return
    void task.run(() => client.settle(nodeId, { ...word, seen }), done).then(() => reload('lists '))
  }
  const isOff = task.isBusy || !isLive || seen === null
  return (
    <>
      <Button
        isSmall
        disabled={isOff}
        onClick={settle({ happened: true }, 'Noted: it happened. Nothing is run again.')}
      >
        It happened
      </Button>
      <Button isSmall disabled={isOff} onClick={settle({ happened: false }, 'Noted: it did not. It runs again.')}>
        It did not, run it
      </Button>
      <Button isSmall look="quiet" disabled={isOff} onClick={settle({ leave: true }, 'Left as it is')}>
        Leave it
      </Button>
    </>
  )
}

type Word = { readonly happened: true } | { readonly happened: false } | { readonly leave: true }
