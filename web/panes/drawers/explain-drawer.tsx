// Why something is allowed, asked for or denied: the verdict first, then each layer with its rule.

import { type FormEvent, type ReactNode, useState } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import type { Explanation } from '../../data/types.ts'
import { Button } from '../../parts/button.tsx'
import { Drawer } from '../../parts/dialog.tsx'
import { AgentPath } from '../../parts/figures.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Shape } from '../../parts/state.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import type { Shown } from '../../words/shown.ts'

interface ExplainDrawerProps {
  readonly nodeId: string
  readonly path: readonly string[]
  /** What is asked about first: `tool:deploy`. */
  readonly request: string
  readonly onClose: () => void
}

type Verdict = Explanation['verdict']

const VERDICTS: Readonly<Record<Verdict, readonly [Shown, string]>> = {
  allow: ['done', 'Allowed.'],
  ask: ['needs', 'Only with a person’s yes.'],
  deny: ['failed', 'Not allowed.'],
}

export function ExplainDrawer({ nodeId, path, request, onClose }: ExplainDrawerProps): ReactNode {
  const [asked, setAsked] = useState(request)
  const [draft, setDraft] = useState('')
  const { value, error } = useRequest(`explain ${nodeId} ${asked}`, () => client.explainNode(nodeId, asked))
  const explain = (event: FormEvent) => {
    event.preventDefault()
    if (draft.trim() !== '') setAsked(draft.trim())
  }
  const line = (
    <>
      <AgentPath path={path} />
      <code className="dim">{asked}</code>
    </>
  )
  return (
    <Drawer title={`Why may ${path.at(-1)} do this?`} line={line} label="Layers" onClose={onClose}>
      {error === null ? null : <ProblemNote error={error} />}
      {value === undefined ? null : <Layers explanation={value} />}
      <form className="try" onSubmit={explain}>
        <label className="field">
          <span className="name">Ask about something else</span>
          <input
            className="in mono"
            value={draft}
            placeholder="tool:deploy, exec:git push, file.write:/workspace/a.txt"
            onChange={(event) => setDraft(event.target.value)}
          />
          <span className="hint">Decides exactly as a call would. Nothing is run.</span>
        </label>
        <Button type="submit">Explain</Button>
      </form>
    </Drawer>
  )
}

function Layers({ explanation }: { readonly explanation: Explanation }): ReactNode {
  const { verdict, reason, by, answers } = explanation
  const [state, words] = VERDICTS[verdict]
  return (
    <>
      <p className={`verdict verdict-${verdict}`}>
        <Shape state={state} isDecoration />
        <span>
          <b>{words}</b> {verdict === 'allow' ? 'Every layer allows it.' : `The strictest layer decides: ${reason}.`}
        </span>
      </p>
      <ol className="layers">
        {answers.map((answer, at) => {
          const isDeciding = answer.by === by && answer.verdict === verdict && verdict !== 'allow'
          return (
            <li key={`${at} ${answer.by}`} className={`layer ${isDeciding ? `layer-win verdict-${verdict}` : ''}`}>
              {isDeciding ? (
                <Shape state={state} isDecoration />
              ) : (
                <Icon name={signOf(answer.verdict)} className="dim" />
              )}
              <LayerWords answer={answer} />
              {isDeciding ? <span className="meta">decides</span> : null}
            </li>
          )
        })}
      </ol>
    </>
  )
}

function signOf(verdict: Verdict): 'check' | 'person' | 'close' {
  return verdict === 'allow' ? 'check' : verdict === 'ask' ? 'person' : 'close'
}

function LayerWords({ answer: { by, verdict, rule } }: { readonly answer: Explanation['answers'][number] }): ReactNode {
  if (rule === null) {
    return (
      <span>
        <b>{by}</b> {verdict === 'allow' ? 'says nothing about it' : 'has no rule that allows it'}
      </span>
    )
  }
  const words = { allow: 'allows by', ask: 'asks for', deny: 'denies' }[verdict]
  return (
    <span>
      <b>{by}</b> {words} <code>{rule}</code>
    </span>
  )
}
