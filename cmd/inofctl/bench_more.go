package main

import "github.com/spf13/cobra"

func (a *app) benchSyncCmd() *cobra.Command     { return &cobra.Command{Use: "sync", Hidden: true} }
func (a *app) benchFailoverCmd() *cobra.Command { return &cobra.Command{Use: "failover", Hidden: true} }
