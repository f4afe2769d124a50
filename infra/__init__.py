"""The AWS CDK app: two stacks, built from `sweephand.topology`; a construct per module, no logic of the scheduler."""
