import { useCounter } from './support/counter.ts'
import { inDoubtSuite } from './support/suites/in-doubt.ts'

inDoubtSuite({ on: '', counter: await useCounter(), store: 'sqlite', isSample: false })
