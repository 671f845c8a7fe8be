/** The planner: chooses tools for agents whose model does not call them itself. */
export { failedPlan, PlanReader, readCommands } from './plan-reader.ts'
export { planningOf } from './planning.ts'
export { toolLogs } from './tool-logs.ts'
