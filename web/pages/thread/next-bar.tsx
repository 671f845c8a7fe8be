import { approvalsOf, questionsOf } from 'legate/client'
import { type ReactNode, useEffect, useState } from 'react'
import { useOfTree } from '../../data/tree.ts'
import { wantedOf } from '../../panes/ask/facts.ts'
import { Button } from '../../parts/button.tsx'
import { Shape } from '../../parts/state.tsx'
import { navigate, pathOfRun } from '../../window/router.ts'
import { useThread } from './state/thread-state.ts'

/** On small screens: the next thing that needs you, unless it, or the line above, is in sight. */
export function NextBar(): ReactNode {
  const { conversationId } = useThread()
  const first = useOfTree((state) => approvalsOf(state)[0] ?? questionsOf(state)[0])
  const isHidden = useNothingInSight(first?.nodeId)
  if (first === undefined || isHidden) return null
  const wants = 'request' in first ? `wants ${wantedOf(first.request)}` : 'asks something'
  return (
    <div className="next">
      <Shape state="needs" isDecoration />
      <span className="grow cut">
        <b>{first.path.at(-1)}</b> {wants}
      </span>
      <Button isSmall look="primary" onClick={() => navigate(pathOfRun(conversationId, '', first.nodeId))}>
        Go to it
      </Button>
    </div>
  )
}

/** True while the card, or the line that leads to it, can be seen. */
function useNothingInSight(nodeId: string | undefined): boolean {
  const [isSeen, setSeen] = useState(true)
  useEffect(() => {
    if (nodeId === undefined) return
    const seen = new Set<Element>()
    const watch = new IntersectionObserver((list) => {
      for (const { target, isIntersecting } of list) {
        if (isIntersecting) seen.add(target)
        else seen.delete(target)
      }
      setSeen(seen.size > 0)
    })
    for (const element of document.querySelectorAll('.why, [data-ask]')) watch.observe(element)
    return () => watch.disconnect()
  }, [nodeId])
  return isSeen
}
